# BearSSL: the TLS 1.2 client and what it needs; the linker takes what is used. Left out: the server side, the 15-bit
# arithmetic for small processors, POWER8 code; and what asks the system for the time and for random bytes.
sources := $(filter-out src/ssl/ssl_server% src/ssl/ssl_scert% src/ssl/ssl_hs_server.c src/%_pwr8.c \
	src/symcipher/aes_pwr8_%,$(patsubst $(SRC)/%,%,$(sort $(wildcard $(SRC)/src/*.c $(SRC)/src/*/*.c))))
cppflags := -I$(SRC)/src -I$(SRC)/inc -DBR_RDRAND=0 -DBR_USE_URANDOM=0 -DBR_USE_UNIX_TIME=0
headers := $(foreach h,$(notdir $(wildcard $(SRC)/inc/*.h)),inc/$h:$h)
