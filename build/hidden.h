/* Included before every source of the product: nothing of it is ever in another module, so that an address need not be
 * looked up in a table that must be relocated (of the program for aarch64 a tenth). -fvisibility does the same for what
 * a file defines, not for what it declares. */
#pragma GCC visibility push(hidden)
