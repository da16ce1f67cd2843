"""
tools/sections/mutants.py - sections with one mistake each

Purpose: what the emulator must notice. A check that finds nothing there finds nothing anywhere.
Place: used by tools/check-sections.
"""

MUTANTS = {     # what a test must notice; by machine where the text differs
    "no look at the size": {"x86-64": '-DSTOOK_SECTION_POP_CHECK="movzwl %%r10w,%%r11d;'
                                      'cmpq $-1,%%r11;"',
                            "aarch64": '-DSTOOK_SECTION_POP_CHECK="and x13,x15,#0xffff;"'},
    "commit before the object": {"x86-64": '-DSTOOK_SECTION_PUSH="incq %%r10;movq %%r10,(%%r9);'
                                           'movq %[object],32(%%r9,%%r11,8);cmpq %%r9,%%r9;'
                                           'jne %l[twice];"',
                                 "aarch64": '-DSTOOK_SECTION_PUSH="add x15,x15,#1;str x15,[x14];'
                                            'add x16,x14,x13,lsl #3;str %[object],[x16,#32];'
                                            'cmp x16,x16;b.ne %l[twice];"'},
}
MARK_MUTANTS = {        # flags, as above
    "pop without a look at the mark": {
        "x86-64": '-DSTOOK_SECTION_POP_CHECK="movzwl %%r10w,%%r11d;testl %%r11d,%%r11d;jz 4b;"',
        "aarch64": '-DSTOOK_SECTION_POP_CHECK="and x13,x15,#0xffff;cbz x13,4b;"'},
}
MARK_OWN_MUTANTS = {    # as OWN_MUTANTS
    "pop_n passes the mark": {
        "x86-64": ('"negl %k[i]\\n\\t"\n', '"xorl %k[i], %k[i]\\n\\t"\n'),
        "aarch64": ('"sub x16, x17, x16\\n\\t"\n                "cmp x16, %[n]\\n\\t"\n'
                    '                "csel %[n], x16, %[n], lo\\n\\t"\n', '')},
    "rearm does not compare the word": {
        "x86-64": ('"cmpq %[from], (%[main])\\n\\t"\n                "jne 4b\\n\\t"\n', ''),
        "aarch64": ('"cmp x15, %[from]\\n\\t"\n                "b.ne 4b\\n\\t"\n', '')},
    "rearm does not compare main": {
        "x86-64": ('"cmpq %[main], (%%r10,%[line])\\n\\t"\n                "jne 4b\\n\\t"\n', ''),
        "aarch64": ('"cmp x14, %[main]\\n\\t"\n                "b.ne 4b\\n\\t"\n', '')},
}
OWN_MUTANTS = {         # by machine: text of src/section/section_*.h, and what is there instead
    "rcu_push fills the sheaf": {
        "x86-64": ('"jae 6b', '"ja 6b'), "aarch64": ('"b.hs 6b', '"b.hi 6b')},
    "rcu_push commits before the object": {
        "x86-64": ('"movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) '
                   '"-8(%%r9,%%r11,8)\\n\\t"\n'
                   '                "incq %%r10\\n\\t"\n'
                   '                "movq %%r10, (%%r9)\\n\\t"\n',
                   '"incq %%r10\\n\\tmovq %%r10, (%%r9)\\n\\t"\n'
                   '"movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) '
                   '"-8(%%r9,%%r11,8)\\n\\t"\n'),
        "aarch64": ('"str %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) '
                    '" - 8]\\n\\t"\n'
                    '                "add x15, x15, #1\\n\\t"\n'
                    '                "str x15, [x14]\\n\\t"\n',
                    '"add x15, x15, #1\\n\\tstr x15, [x14]\\n\\t"\n'
                    '"str %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) '
                    '" - 8]\\n\\t"\n')},
    "rcu_fill stores where it must compare": {
        "x86-64": ('"lock cmpxchgq %%r9, (%%r10)\\n\\t"',
                   '"cmpq %%rax, (%%r10)\\n\\tmovq %%r9, (%%r10)\\n\\t"'),
        "aarch64": ('"stlxr %w[failed], xzr, [x15]\\n\\t"',
                    '"mov %w[failed], #0\\n\\tstr xzr, [x15]\\n\\t"')},
    "rcu_fill takes a sheaf with more room": {
        "x86-64": ('(%%rax), %%r11w\\n\\t"\n                "jne 4b\\n\\t"',
                   '(%%rax), %%r11w\\n\\t"'),
        "aarch64": ('"ldrh w16, [%[sheaf], #" STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "]\\n\\t"\n'
                    '                "cmp w13, w16\\n\\t"\n                "b.ne 4b\\n\\t"', '""')},
    "exchange without a look at the size": {
        "x86-64": ('STOOK_SECTION_EXCHANGE_CHECK\n                "lock', '"lock'),
        "aarch64": ('STOOK_SECTION_EXCHANGE_CHECK\n                "ldaxp', '"ldaxp')},
    "exchange without a look at the configuration": {
        "x86-64": ('"cmpl %[generation], (%[config])\\n\\t"\n                "jne 4b\\n\\t"', '""'),
        "aarch64": ('"cmp w16, %w[generation]\\n\\t"\n                "b.ne 4b\\n\\t"', '""')},
}
CHARGE_MUTANTS = {      # the same, of charges; the compiler makes some of them out of C on aarch64
    "charge without a look at group and bounds": {
        "x86-64": ('"jnz 4b\\n\\t" \\\n        "movq %%r9, (%%r10,%[word])',
                   '"movq %%r9, (%%r10,%[word])'),
        "aarch64": ('"cbnz x14, 4b\\n\\t" \\\n        "str x13', '"str x13')},
    "charge commits before its look": {
        "x86-64": ('"jnz 4b\\n\\t" \\\n        "movq %%r9, (%%r10,%[word])',
                   '"movq %%r9, (%%r10,%[word])\\n\\tjnz 4b'),
        "aarch64": ('"cbnz x14, 4b\\n\\t" \\\n        "str x13, [x15, %[word]]',
                    '"str x13, [x15, %[word]]\\n\\tcbnz x14, 4b')},
    "charge_pop believes its guess": {
        "x86-64": ('"cmpq " STOOK_SECTION_TOP ", %[object]\\n\\t" \\\n'
                   '        "jne 6f\\n\\t" \\\n', '')},
    "an abort behind the charge denies it": {
        "x86-64": ('"movl $1, %k[object]\\n\\t")\n', '"xorl %k[object], %k[object]\\n\\t")\n')},
    "precharge_set without a comparison": {
        "x86-64": ('"jne 4b\\n\\t"\n                "movq %[desired]', '"movq %[desired]'),
        "aarch64": ('"b.ne 4b\\n\\t"\n                "str %[desired]', '"str %[desired]')},
}
HOT_MUTANTS = {         # the same in dropin/hot_*.S, *.h
    "malloc without a look at the size": {
        "x86-64": ("        testl $POPPABLE, %ecx\n        jle \\empty", "#"),
        "aarch64": ("        ands w13, w15, #POPPABLE\n        b.le 4b",
                    "        and x13, x15, #0xffff  //")},
    "malloc believes its guess": {
        "x86-64": ("        jne \\checked\n", "")},
    "direct sections have no bound": {
        "x86-64": ("        jae \\checked\n", ""),
        "aarch64": ("        b.hs \\checked\n        lsl", "        lsl")},
    "allocations have a direct section before the start": {
        "aarch64": ("        cmp x0, x6, lsr #16", "        cmp x0, #4096")},
    "free commits before the object": {
        "x86-64": ("        movq %rdi, OBJECTS(%r9,%r11,8)\n        movq %rdi, GUESS(\\line)\n"
                   "        incq %rcx\n        movq %rcx, (%r9)\n",
                   "        incq %rcx\n        movq %rcx, (%r9)\n"
                   "        movq %rdi, OBJECTS(%r9,%r11,8)\n        movq %rdi, GUESS(\\line)\n"),
        "aarch64": ("        str x0, [x16, #OBJECTS]\n        add x15, x15, #1\n"
                    "        str x15, [x14]\n",
                    "        add x15, x15, #1\n        str x15, [x14]\n"
                    "        str x0, [x16, #OBJECTS]\n")},
    "free does not know when it is full": {
        "x86-64": ("        cmpl BOUND(%r9), %r11d\n", "        cmpl $-1, %r11d\n"),
        "aarch64": ("        cmp w13, w16\n        b.hs 4b\n"
                    "        add x16, x14, x13, lsl #3\n        ldr x17",
                    "        add x16, x14, x13, lsl #3\n        ldr x17")},
}
MARK_HOT_MUTANTS = {
    "malloc without a look at the mark": {
        "x86-64": ("        testl $POPPABLE, %ecx\n        jle",
                   "        testl %r11d, %r11d\n        jz"),
        "aarch64": ("        ands w13, w15, #POPPABLE\n        b.le 4b",
                    "        and x13, x15, #0xffff\n        cbz x13, 4b")},
    "malloc's other section without a look at the mark": {
        "x86-64": ("        testl $POPPABLE, %eax\n        jle",
                   "        testl %r11d, %r11d\n        jz")},
}
# The same, of swaps. BREAK names the same mistake in tests/proof/models/slot.pml. A section that
# ends before its looks is not aborted between them and the commit.
SWAP_MUTANTS = {
    "malloc's and free's swap stores where it must compare (BREAK=10)": {
        "x86-64": ("        lock cmpxchg16b (%r10)\n",
                   "        movq %rbx, %xmm0\n        movq %rcx, %xmm1\n"
                   "        punpcklqdq %xmm1, %xmm0\n        cmpq %rax, %rax\n"
                   "        movdqu %xmm0, (%r10)\n")},
    "malloc's and free's swap is not aborted (BREAK=11)": {
        "x86-64": ("        testq %rdx, %rdx\n        jz \\miss\n",
                   "        testq %rdx, %rdx\n        jz \\miss\n2:\n")},
    "malloc makes the sheaf without room a spare": {
        "x86-64": ("is never a spare */\n        je \\name\\()_miss\n", "is never a spare */\n")},
    "malloc swaps in a spare without objects": {
        "x86-64": ("        cmpw $0, (%rdx)\n        je \\name\\()_miss\n", "")},
    "free swaps a main with room": {
        "x86-64": ("        jb \\name\\()_miss\n", "")},
    "free swaps for an object that is free": {
        "x86-64": ("        cmpq %rdi, OBJECTS - 8(%rax,%r11,8)\n        je \\name\\()_miss", "#")},
    "free swaps in a full spare": {
        "x86-64": ("        cmpl BOUND(%rdx), %r11d\n        jae \\name\\()_miss\n", "")},
}
SEALED_MUTANTS = {      # of dropin/hot_sealed_x86_64.h
    "a free of a sealed object stores where it must compare": {
        "x86-64": ("        lock cmpxchgq %rdx, (%rdi,%rcx)\n",
                   "        movq %rdx, (%rdi,%rcx)\n        cmpq %rax, %rax\n")},
    "the same, of the only thread": {
        "x86-64": ("        cmpxchgq %rdx, (%rdi,%rcx)\n        jne \\miss\n        WAIT \\name\n",
                   "        movq %rdx, (%rdi,%rcx)\n        WAIT \\name\n")},
    "what waits is replaced where it must be compared": {
        "x86-64": ("        \\lock cmpxchgq %rdi, (%rcx)\n",
                   "        movq %rdi, (%rcx)\n        cmpq %rax, %rax\n")},
    "a sealed object is not filled": {
        "x86-64": ("        movq %r11, (%rdi,%r9)\n", "")},
    "a malloc does not look whether the seal is that of a free object": {
        "x86-64": ("        UNTIE %r9, %rcx, 0, \\name\\()_bad\n",
                   "        movl $47, %r9d\n")},
}
