/* The layouts of Perl 5.28 to 5.44, from the headers of each version: intrpvar.h, cop.h, hv.h. Odd versions are made
 * for those who develop Perl. Whether the build has threads changes none of these. */
#include "runtime/perl/private.h"

#include <stdio.h>

void perl_version_text(uint32_t version, char out[static PERL_VERSION_TEXT])
{
    (void)snprintf(out, PERL_VERSION_TEXT, "5.%u.%u", version >> 8 & 255, version & 255);
}

bool perl_layout_of(uint32_t version, struct perl_layout *out, struct err *err)
{
    uint32_t minor = version >> 8;
    if (minor < 28 || minor > 44 || minor % 2 != 0) {
        char text[PERL_VERSION_TEXT];
        perl_version_text(version, text);
        return err_set(err, ERR_UNSUPPORTED, 0, "Perl %s is not known here; 5.28 to 5.44 can be read", text);
    }
    bool wide = minor >= 32; /* a context tells the sub around it */
    *out = (struct perl_layout){
        .curcop = minor >= 34 ? 0xd0 : 0xe0,
        .curstackinfo = minor >= 34 ? 0xe0 : 0xf0,
        .comppad = minor >= 34 ? 0x120 : 0x130,
        .modglobal = minor >= 40 ? 0x6a8 : minor == 38 ? LAYOUT_NONE : minor >= 34 ? 0x780 : 0x790,
        .info_type = wide ? 0x2c : 0x28,
        .context_bytes = wide ? 0x68 : 0x60,
        .cv = wide ? 0x48 : 0x40,
        .prevcomppad = wide ? 0x40 : 0x38,
        .eval_name = wide ? 0x40 : 0x38,
        .aux_in_body = minor >= 36,
    };
    return true;
}
