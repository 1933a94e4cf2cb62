#pragma once
#include "opsmith_half.h"
