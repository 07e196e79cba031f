/* Files embedded as bytes. C sees them as
       extern const unsigned char flame_js[], flame_js_end[], flame_js_sha256[], flame_css[], flame_css_end[];
       extern const unsigned char trust_roots[], trust_roots_end[];
   paths are relative to the repository's root, where the assembler runs. */

    .macro embed name, file
    .section .rodata.\name, "a"
    .globl \name, \name\()_end
\name:
    .incbin "\file"
\name\()_end:
    .byte 0
    .endm

    embed flame_js, "build/out/flame.js.deflate"
    embed flame_js_sha256, "build/out/flame.js.sha256"
    embed flame_css, "build/out/flame.css"
    embed trust_roots, "build/out/roots.bin"

    .section .note.GNU-stack, "", %progbits
