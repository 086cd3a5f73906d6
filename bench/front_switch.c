/*
 * The OpenCL front with a switch, for bench-slowdown only: off puts the next layer's own
 * functions into our dispatch table, so that a call costs exactly what it costs
 * without the front.  The switch must not be in the product: it is a way past
 * the gate.
 */
#include "../src/front/opencl/layer.c"

LAYER_EXPORT void sluice_bench_gate_switch(int on);

/* Between commands only: nothing may be in flight. */
void sluice_bench_gate_switch(int on)
{
    table = ocl_next;
    if (on)
        ocl_fill_table(&table);
}
