# mbedTLS: the TLS client for servers that refuse BearSSL's (1.3, Extended Master Secret, RSA-PSS). What is compiled of it
# says vendor/shim/mbedtls/config.h: the files that it leaves out are empty.
sources := $(patsubst $(SRC)/%,%,$(sort $(wildcard $(SRC)/library/*.c)))
cppflags := -DMBEDTLS_CONFIG_FILE='"vendor/shim/mbedtls/config.h"' -I. -I$(SRC)/include -I$(SRC)/library
headers := vendor/shim/mbedtls/config.h:mbedtls/mbedtls_config.h $(foreach h,$(filter-out %/mbedtls_config.h,\
	$(patsubst $(SRC)/%,%,$(wildcard $(SRC)/include/mbedtls/*.h $(SRC)/include/psa/*.h))),$h:$(h:include/%=%))

# For size: what it computes is a handshake now and then.
override CFLAGS += -Os
