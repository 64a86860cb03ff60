"""Runs and judges further inputs while a certification asks questions of its own."""

from dataclasses import dataclass

from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome
from verify.audit.convention.convention import Convention
from verify.audit.gradient.judge import GradientJudgement, judge_gradients
from verify.audit.judge import Judgement, judge
from verify.audit.subject.process import Subject


@dataclass(frozen=True)
class Finding:
    """What is wrong with a kernel, what was observed, and the figures that support this reason."""

    reason: str
    detail: str
    evidence: str


@dataclass(frozen=True, eq=False)
class Laboratory:
    """A subject beside the bench that measures it."""

    subject: Subject
    bench: Bench
    dtype: str

    @property
    def convention(self) -> Convention:
        return self.subject.convention

    def accepts(self, case: Case) -> bool:
        """Whether the kernel promises to take such a case."""
        return self.convention.refusal(case) is None

    def length(self, tokens: int) -> int:
        """The smallest length of at least ``tokens`` that the kernel takes."""
        multiple = self.convention.length_multiple
        return -(-max(tokens, 1) // multiple) * multiple

    def run(self, case: Case) -> Outcome:
        return self.subject.run(case)

    def run_gradients(self, case: Case) -> Outcome:
        """Run a case and differentiate its functional."""
        return self.subject.run(case, self.bench.functional(case))

    def judge_gradients(self, case: Case) -> GradientJudgement:
        """Run a case, differentiate it and measure the gradients."""
        yardstick = self.bench.gradient_yardstick(case)
        return judge_gradients(case, self.subject.run(case, yardstick.functional), yardstick)

    def judge(self, case: Case) -> Judgement:
        """Run a case and measure what it gives."""
        return judge(case, self.run(case), self.bench.yardstick(case))
