#pragma once
#include "opsmith_emulator.h"
