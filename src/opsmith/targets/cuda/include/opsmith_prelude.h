/* What every program may use without including it. */
#define _CG_LIMIT_INCLUDED_DEPENDENCIES /* cooperative groups with traits of their own: there is no libcu++ here */
#include <stdint.h>
#include <float.h>
#include <limits.h>
#include <math.h>
