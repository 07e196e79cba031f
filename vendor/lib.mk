# Compiles one library for one tool chain. Called by build/vendor.mk from the repository's root with
#   LIB SRC OUT ARCH CC AR CFLAGS
# vendor/$(LIB).mk, written for each library, defines
#   sources   C files, relative to $(SRC), or full paths of our own shims
#   cppflags  defines and include folders
#   headers   rows "FROM:TO" of what is installed: a path below $(SRC), or of our own shims, and its name below
#             $(OUT)/include
# Warnings are the upstream's business and switched off.

all:

include vendor/$(LIB).mk

OBJ := $(OUT)/obj/$(LIB)
ARCHIVE := $(OUT)/lib/lib$(LIB).a
objects := $(patsubst %.c,$(OBJ)/%.o,$(sources))
installed := $(foreach h,$(headers),$(OUT)/include/$(lastword $(subst :, ,$h)))

all: $(installed) $(ARCHIVE)

define install_header
$(OUT)/include/$2: $(if $(filter vendor/%,$1),,$(SRC)/)$1
	@mkdir -p $$(@D)
	cp $$< $$@ && touch $$@
endef
$(foreach h,$(headers),$(eval $(call install_header,$(firstword $(subst :, ,$h)),$(lastword $(subst :, ,$h)))))

$(objects): $(OUT)/../vendor.flags vendor/$(LIB).mk vendor/lib.mk $(wildcard vendor/shim/*/*)

$(OBJ)/vendor/%.o: vendor/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -w $(cppflags) -I$(OUT)/include $(CFLAGS) -c -o $@ $<

$(OBJ)/%.o: $(SRC)/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -w $(cppflags) -I$(OUT)/include $(CFLAGS) -c -o $@ $<

$(ARCHIVE): $(objects)
	@mkdir -p $(@D)
	rm -f $@
	$(AR) Dcrs $@ $(objects)
