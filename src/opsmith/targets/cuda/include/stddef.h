/* size_t and ptrdiff_t. */
#pragma once
typedef long ptrdiff_t;
#ifndef NULL
#define NULL 0
#endif
