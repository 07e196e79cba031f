/* The character classes libiberty's demanglers ask for, ASCII whatever the locale. */
#ifndef SAFE_CTYPE_H
#define SAFE_CTYPE_H

#define ISDIGIT(c) ((unsigned)(c) - '0' < 10)
#define ISLOWER(c) ((unsigned)(c) - 'a' < 26)
#define ISUPPER(c) ((unsigned)(c) - 'A' < 26)
#define ISALPHA(c) (((unsigned)(c) | 32) - 'a' < 26)
#define ISALNUM(c) (ISALPHA(c) || ISDIGIT(c))
#define ISXDIGIT(c) (ISDIGIT(c) || ((unsigned)(c) | 32) - 'a' < 6)
#define ISPRINT(c) ((unsigned)(c) - 32 < 95)
#define ISSPACE(c) ((c) == ' ' || (unsigned)(c) - '\t' < 5)

#endif
