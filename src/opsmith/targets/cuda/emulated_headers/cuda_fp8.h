#pragma once
#include "opsmith_fp8.h"
