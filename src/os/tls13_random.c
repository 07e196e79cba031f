/* The random bytes that mbedTLS takes (deliver/tls13.c). Weak, so that a test can have the same ones each time. */
#include "os/net.h"

#include <psa/crypto.h>

__attribute__((weak)) psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context,
                                                                   uint8_t *to, size_t room, size_t *len)
{
    (void)context;
    net_random(NULL, to, room);
    *len = room;
    return PSA_SUCCESS;
}
