"""flash-linear-attention's Triton kernels on a machine without a GPU, by way of Triton's own interpreter.

    attnproof certify examples/fla_on_cpu.py:chunk_kda --mechanism kda --convention fla --time-limit 300

Made for triton 3.7 to 3.9 with flash-linear-attention 0.6.0, float32 alone: the interpreter computes bfloat16
wrongly. It shows the algorithm, its indexing and its casts; races, the compiler and the approximate
instructions of a GPU it does not show, and products are exact float32 ones, never TF32.
"""

# ruff: noqa: E402 - fla must find the interpreter patched.
import ast
import dataclasses
import functools
import os

# Both packages look at these when they are imported.
os.environ["TRITON_INTERPRET"] = "1"
os.environ["FLA_DISABLE_BACKEND_DISPATCH"] = "1"

from triton import language as tl
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner


def _one_configuration(run):
    """There is nothing to time without a driver: the autotuner's last one, often of few programs."""

    @functools.wraps(run)
    def launch(self, *args, **kwargs):
        self.configs, self.cache_results = self.configs[-1:], False
        return run(self, *args, **kwargs)

    return launch


def _tensor_loop_variables(self, node):
    """`for i in range(n)` counts in Triton scalars, as the compiler has it, not in Python integers."""
    self.generic_visit(node)
    if isinstance(node.target, ast.Name) and ast.unparse(node.iter).startswith(("range(", "tl.range(")):
        name = node.target.id
        node.body.insert(0, ast.parse(f"{name} = interpreter_semantic.to_tensor({name}, False)").body[0])
    return node


def _captured_builtins(patch):
    """Builtins a module has bound to a name of its own, such as `gather = tl.gather`, are interpreted too."""

    def interpreted(builtin):
        def call(*args, _semantic=None, **kwargs):
            return builtin(*args, **kwargs, _semantic=interpreter.interpreter_semantic)

        return call

    @functools.wraps(patch)
    def patched(function):
        names = function.__globals__
        if not str(names.get("__name__")).startswith("triton."):
            for name, value in list(names.items()):
                if callable(value) and getattr(value, "__triton_builtin__", False):
                    names[name] = interpreted(value)
        modules = [value for value in names.values() if value is tl or value is tl.core]
        # A function called within a launch finds the language patched, and patching it again takes long.
        if modules and not any(tl.core.is_builtin(module.load) for module in modules):
            return interpreter._LangPatchScope()
        return patch(function)

    return patched


Autotuner.run = _one_configuration(Autotuner.run)
interpreter.ASTTransformer.visit_For = _tensor_loop_variables
interpreter._patch_lang = _captured_builtins(interpreter._patch_lang)
interpreter.interpreter_builder.options = dataclasses.replace(
    interpreter.interpreter_builder.options,
    allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
)

from fla.ops.attn import parallel_attn
from fla.ops.delta_rule import fused_recurrent_delta_rule
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from fla.ops.gdn2 import chunk_gdn2, fused_recurrent_gdn2
from fla.ops.generalized_delta_rule.dplr import chunk_dplr_delta_rule, fused_recurrent_dplr_delta_rule
from fla.ops.kda import chunk_kda, fused_recurrent_kda
from fla.ops.linear_attn import chunk_linear_attn, fused_recurrent_linear_attn
from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla

__all__ = [
    "chunk_dplr_delta_rule",
    "chunk_gated_delta_rule",
    "chunk_gdn2",
    "chunk_kda",
    "chunk_linear_attn",
    "chunk_simple_gla",
    "fused_recurrent_delta_rule",
    "fused_recurrent_dplr_delta_rule",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gdn2",
    "fused_recurrent_kda",
    "fused_recurrent_linear_attn",
    "fused_recurrent_simple_gla",
    "parallel_attn",
]
