#include "symbol/pairs.h"

#include <stdlib.h>

enum {
    END = 0,
    PLAIN = 1, /* the next byte is meant as it is */
    PAIR_FIRST = 0x80,
    PAIR_COUNT = 128,
    LETTER_FIRST = 2, /* below PAIR_FIRST, a byte that stands for itself */
};

/* The frequent ones among the function names of Linux 6.18. */
static const char letters[] =
    "T____a_b_c_d_e_f_i_l_m_n_p_r_s_t_uacadalarasatb_blbpbtc_cacechck"
    "clcocpctd_dedie_eaecedegeneresetevexf_fifsfug_gegrhaidinioirisit"
    "k_kel_lalelilllom_mamemompn_ncndnenonto_obocolonoporouowp_papepi"
    "prpuq_qur_rarerfrirorts_seshsmstt_tatetitotrtuu_unupusvevmw_xfy_";

_Static_assert(sizeof letters == 2 * PAIR_COUNT + 1, "a byte for each pair");

void pairs_init(struct pairs *p, size_t max_bytes)
{
    buf_init(&p->bytes, max_bytes < UINT32_MAX ? max_bytes : UINT32_MAX);
}

void pairs_release(struct pairs *p)
{
    buf_release(&p->bytes);
}

size_t pairs_bytes(const struct pairs *p)
{
    return p->bytes.cap;
}

void pairs_begin(struct pairs_code *code)
{
    memset(code, 0, sizeof *code);
    for (unsigned i = 0; i < PAIR_COUNT; i++) {
        unsigned char first = (unsigned char)letters[2 * i];
        unsigned char second = (unsigned char)letters[2 * i + 1];
        code->of[first][second] = (unsigned char)(PAIR_FIRST + i);
    }
}

bool pairs_add(struct pairs *p, const struct pairs_code *code, struct str name, uint32_t *place)
{
    const unsigned char *at = (const unsigned char *)name.ptr, *end = at + name.len;
    unsigned char *room = (unsigned char *)buf_room(&p->bytes, 2 * name.len + 1), *to = room;
    if (room == NULL) {
        return false;
    }
    while (at < end) {
        unsigned char first = *at++, second = at < end ? *at : END;
        unsigned char pair = (first | second) < PAIR_FIRST ? code->of[first][second] : 0;
        if (pair != 0) {
            *to++ = pair;
            at++;
            continue;
        }
        *to = PLAIN;
        to += first < LETTER_FIRST || first >= PAIR_FIRST;
        *to++ = first;
    }
    *to++ = END;
    *place = (uint32_t)p->bytes.len;
    p->bytes.len += (size_t)(to - room);
    return true;
}

void pairs_finish(struct pairs *p)
{
    char *shrunk = p->bytes.len == 0 ? NULL : realloc(p->bytes.ptr, p->bytes.len + 1);
    if (shrunk != NULL) {
        p->bytes.ptr = shrunk;
        p->bytes.cap = p->bytes.len + 1;
    }
}

void pairs_get(const struct pairs *p, uint32_t place, struct buf *out)
{
    const unsigned char *bytes = (const unsigned char *)p->bytes.ptr;
    for (size_t i = place; i < p->bytes.len && bytes[i] != END; i++) {
        if (bytes[i] >= PAIR_FIRST) {
            buf_str(out, (struct str){letters + 2 * (bytes[i] - PAIR_FIRST), 2});
            continue;
        }
        i += bytes[i] == PLAIN && i + 1 < p->bytes.len;
        buf_byte(out, (char)bytes[i]);
    }
}
