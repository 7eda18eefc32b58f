"""What `cimport tilecore` gives. No import call is needed; the functions are described in tilecore.h."""

from tilecore.capi cimport (
    tilecore_array_tile,
    tilecore_plan,
    tilecore_plan_execute,
    tilecore_plan_execute_region,
    tilecore_plan_execute_region_strided,
    tilecore_plan_execute_strided,
    tilecore_plan_free,
    tilecore_plan_nbytes,
    tilecore_plan_new,
    tilecore_plan_output_shape,
)
