// PocketFFT (https://github.com/mreineck/pocketfft, branch cpp, 33ae5dc), unchanged: its plans of one
// length are all that is used. Its cache of plans is not: the linker would make one of it and of those
// that other libraries in the process have.
#pragma once

#define POCKETFFT_NO_MULTITHREADING
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors of lines are passed within one library
#include "pocketfft_hdronly.hpp"
#pragma GCC diagnostic pop
