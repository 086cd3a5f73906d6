/* The program sluice-broker. */
#include "broker/broker.h"

int main(int argc, char **argv)
{
    return broker_main(argc, argv);
}
