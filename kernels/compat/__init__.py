"""The kernels under the names, signatures and layouts of other libraries, for replacement by one import."""
