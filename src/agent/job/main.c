/* The program sluice-shim. */
#include "shim.h"

int main(int argc, char **argv)
{
    return shim_main(argc, argv);
}
