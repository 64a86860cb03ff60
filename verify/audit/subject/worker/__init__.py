"""The process in which a kernel under test runs.

Needs the standard library and torch only, so that it runs under any interpreter (>= 3.10) that has
torch; :mod:`verify.audit.subject.process` starts it there under a private package name, so its modules import
one another relatively and nothing else of this project.
"""
