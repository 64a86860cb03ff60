"""Why a kernel is wrong: reasons, each confirmed by a comparison."""
