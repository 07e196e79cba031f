# BearSSL: the TLS 1.2 client and what it needs; the linker takes what is used. Left out: the server side, the 15-bit
# arithmetic for small processors, POWER8 code.
sources := $(filter-out src/ssl/ssl_server% src/ssl/ssl_scert% src/ssl/ssl_hs_server.c src/%_pwr8.c \
	src/symcipher/aes_pwr8_%,$(patsubst $(SRC)/%,%,$(sort $(wildcard $(SRC)/src/*.c $(SRC)/src/*/*.c))))
cppflags := -I$(SRC)/src -I$(SRC)/inc
headers := $(foreach h,$(notdir $(wildcard $(SRC)/inc/*.h)),inc/$h:$h)
