// The built page as bytes of the library. The assembler reads the file: as an array it would take the compiler seconds.
#include <string_view>

__asm__(
    ".pushsection .rodata\n"
    ".global isomer_page_begin\n"
    ".hidden isomer_page_begin\n"
    "isomer_page_begin:\n"
    ".incbin \"" ISOMER_PAGE
    "\"\n"
    ".global isomer_page_end\n"
    ".hidden isomer_page_end\n"
    "isomer_page_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char isomer_page_begin[], isomer_page_end[];  // NOLINT(readability-identifier-naming): as the assembler has them

namespace isomer {

std::string_view page_template() { return {isomer_page_begin, std::size_t(isomer_page_end - isomer_page_begin)}; }

}  // namespace isomer
