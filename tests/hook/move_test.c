/* move_test.c: moves and calls functions that start in every movable way, and tries some that cannot be moved. None is called
 * before it is moved, so that an emulator has not translated it yet.  It does not use cmocka, since it is also built for aarch64,
 * where only a C library is available. SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "adapters/hook/entry.h"

/* A function, the code behind it that does not belong to it, and its size. */
#define FORM_BEFORE(name, text, rest)                                                                                            \
	extern const size_t size_##name;                                                                                         \
	__asm__(".text\n.p2align 4\n.globl form_" #name "\n.type form_" #name ", %function\nform_" #name ":\n" text "\n9: " rest \
		"\n.p2align 4\n.section .rodata\n.p2align 3\nsize_" #name ": .quad 9b - form_" #name "\n.text\n");
#define FORM(name, text) FORM_BEFORE(name, text, "")

__asm__(".data\n.p2align 3\n.globl form_data\nform_data: .quad 1000\nform_pointer: .quad form_sum\n.text\n");

/* The entry of a function, its arguments twice, and its result.  why: reason for which it is not moved. */
#if defined(__x86_64__)
FORM(sum, "push %rbx\nmov %rdi, %rbx\nlea (%rbx,%rsi), %rax\npop %rbx\nret")
FORM(where, "mov (%rsp), %rax\nret")
FORM(endbr, "endbr64\npush %rbp\nmov %rsp, %rbp\nlea (%rdi,%rsi,2), %rax\npop %rbp\nret")
FORM(load, "mov form_data(%rip), %rax\nadd %rdi, %rax\nret")
FORM(lea, "lea form_data(%rip), %rax\nmov (%rax), %rax\nret")
FORM(compare, "cmpl $1000, form_data(%rip)\nsete %al\nmovzbl %al, %eax\nret")
FORM(compare8, "cmpb $5, form_data(%rip)\nsete %al\nmovzbl %al, %eax\nret")
FORM(if8, "test %rdi, %rdi\nje 1f\nmov %rdi, %rax\nret\n1: mov $77, %eax\nret")
FORM(if32, "test %edi, %edi\n.byte 0x0f, 0x85\n.long 1f - . - 4\nmov $77, %eax\nret\n1: mov %rdi, %rax\nret")
FORM(jump, ".byte 0xe9\n.long form_sum - . - 4\nnop")
FORM(jump_pointer, "jmp *form_pointer(%rip)")
FORM(jump8, "jmp 1f\nnop\nnop\nnop\nnop\n1: lea 1(%rdi), %rax\nret")
FORM(call, "call form_sum\nadd $1, %rax\nret")
FORM(call_where, "sub $8, %rsp\ncall form_where\nadd $8, %rsp\nlea form_call_where(%rip), %rcx\nsub %rcx, %rax\nret")
FORM(call_pointer, "sub $8, %rsp\ncall *form_pointer(%rip)\nadd $8, %rsp\nret")
FORM(call_register, "sub $8, %rsp\ncall *%rdx\nadd $8, %rsp\nret")
FORM(call_early, "call *%rdx\nadd $2, %rax\nret")
FORM(filled, "mov %edi, %eax\nret")
FORM_BEFORE(followed, "mov %edi, %eax\nret", "mov $1, %eax\nret")
FORM(back, "xor %eax, %eax\n1: add $2, %rax\ndec %rdi\njnz 1b\nret")
FORM(if_zero, "mov %rdi, %rcx\njrcxz 1f\nmov %rdi, %rax\nret\n1: mov $77, %eax\nret")
FORM(wide, "movabs $0x1122334455667788, %rax\nadd %rdi, %rax\nret")
FORM(segment, "mov %fs:0x28, %rax\nmov %rdi, %rax\nret")
FORM(nops, "xchg %ax, %ax\nnopw 0(%rax,%rax)\nmov %rdi, %rax\nret")
FORM(shared, "mov %rdi, %rax\nadd %rsi, %rax\nret")
FORM(into, "lea 1(%rdi), %rax\n.byte 0xe9\n.long form_shared + 3 - . - 4")
FORM(vector, "vzeroupper\nmov %rdi, %rax\nret")
#define FORMS(X)                                                                                                                 \
	X(sum, 3, 7, NULL)                                                                                                       \
	X(endbr, 5, 11, NULL)                                                                                                    \
	X(load, 1001, 1003, NULL)                                                                                                \
	X(lea, 1000, 1000, NULL)                                                                                                 \
	X(compare, 1, 1, NULL)                                                                                                   \
	X(compare8, 0, 0, NULL)                                                                                                  \
	X(if8, 1, 3, NULL)                                                                                                       \
	X(if32, 1, 3, NULL)                                                                                                      \
	X(jump, 3, 7, NULL)                                                                                                      \
	X(jump_pointer, 3, 7, NULL)                                                                                              \
	X(jump8, 2, 4, "it is too short")                                                                                        \
	X(call, 4, 8, NULL)                                                                                                      \
	X(call_where, 9, 9, NULL)                                                                                                \
	X(call_pointer, 3, 7, NULL)                                                                                              \
	X(call_register, 3, 7, NULL)                                                                                             \
	X(call_early, 5, 9, "a call that would return into the jump")                                                            \
	X(filled, 1, 3, NULL)                                                                                                    \
	X(followed, 1, 3, "it is too short")                                                                                     \
	X(back, 2, 6, "it jumps back to its first instructions")                                                                 \
	X(if_zero, 1, 3, "an instruction that cannot be moved")                                                                  \
	X(wide, 0x1122334455667789, 0x112233445566778b, NULL)                                                                    \
	X(segment, 1, 3, NULL)                                                                                                   \
	X(nops, 1, 3, NULL)                                                                                                      \
	X(shared, 3, 7, "another function jumps into its first instructions") X(into, 4, 8, NULL) X(vector, 1, 3, NULL)
#elif defined(__aarch64__)
FORM(sum, "add x0, x0, x1\nret")
FORM(adr, "adr x3, 1f\nldr x0, [x3]\nret\n.p2align 3\n1: .quad 12345")
FORM(page, "adrp x3, form_data\nldr x0, [x3, #:lo12:form_data]\nret")
FORM(literal, "ldr x0, 1f\nret\n.p2align 3\n1: .quad 0x1122334455667788")
FORM(literal32, "ldr w0, 1f\nret\n1: .long 0x81223344")
FORM(literal_signed, "ldrsw x0, 1f\nret\n1: .long -5")
FORM(literal_double, "ldr d0, 1f\nfmov x0, d0\nret\n.p2align 3\n1: .quad 4711")
FORM(jump, "b form_sum")
FORM(if_zero, "cbz x0, 1f\nret\n1: mov x0, #77\nret")
FORM(if_one, "cbnz x0, 1f\nmov x0, #77\n1: add x0, x0, #1\nret")
FORM(if_bit, "tbz w0, #1, 1f\nmov x0, #77\n1: ret")
FORM(if_no_bit, "tbnz x0, #1, 1f\nmov x0, #77\n1: ret")
FORM(landing, "hint #34\ncbz x0, 1f\nadd x0, x0, x1\n1: ret")
FORM(signed, "paciasp\nadd x0, x0, x1\nautiasp\nret")
FORM(back, "mov x3, x0\n1: subs x3, x3, #1\nb.ne form_back + 4\nadd x0, x0, #1\nret")
FORM(back_first, "sub x0, x0, #1\ncbnz x0, form_back_first\nmov x0, #5\nret")
#define FORMS(X)                                                                                                                 \
	X(sum, 3, 7, NULL)                                                                                                       \
	X(adr, 12345, 12345, NULL)                                                                                               \
	X(page, 1000, 1000, NULL)                                                                                                \
	X(literal, 0x1122334455667788, 0x1122334455667788, NULL)                                                                 \
	X(literal32, 0x81223344, 0x81223344, NULL)                                                                               \
	X(literal_signed, -5, -5, NULL)                                                                                          \
	X(literal_double, 4711, 4711, NULL)                                                                                      \
	X(jump, 3, 7, NULL)                                                                                                      \
	X(if_zero, 1, 3, NULL)                                                                                                   \
	X(if_one, 2, 4, NULL)                                                                                                    \
	X(if_bit, 1, 77, NULL)                                                                                                   \
	X(if_no_bit, 77, 3, NULL)                                                                                                \
	X(landing, 3, 7, NULL)                                                                                                   \
	X(signed, 3, 7, NULL)                                                                                                    \
	X(back, 2, 4, NULL)                                                                                                      \
	X(back_first, 5, 5, "it jumps back to its first instructions")
#endif

typedef long form(long a, long b, void *c);

extern const char __executable_start[], etext[];

#define DECLARE(name, one, two, refusal)                                                                                         \
	form form_##name, wrap_##name;                                                                                           \
	static form *original_##name;                                                                                            \
	static int count_##name;                                                                                                 \
	long wrap_##name(long a, long b, void *c)                                                                                \
	{                                                                                                                        \
		count_##name++;                                                                                                  \
		return original_##name(a, b, c);                                                                                 \
	}
FORMS(DECLARE)

static const struct {
	const char *name;
	form *function, *wrapper;
	form **original;
	int *count;
	const size_t *bytes;
	long one, two;
	const char *refusal;
} forms[] = {
#define ROW(name, one, two, refusal)                                                                                             \
	{#name, form_##name, wrap_##name, &original_##name, &count_##name, &size_##name, (long)one, (long)two, refusal},
    FORMS(ROW)};

enum { COUNT = sizeof forms / sizeof *forms };

static int failed;

static void check(bool right, const char *form_name, const char *what)
{
	if (!right)
		printf("%s: %s\n", form_name, what);
	failed += !right;
}

static bool can_run(const char *name)
{
#if defined(__x86_64__)
	return strcmp(name, "vector") != 0 || __builtin_cpu_supports("avx");
#else
	return true;
#endif
}

/* `deny`: from now on memory cannot be both writable and executable. */
static void deny(void)
{
	enum { SET_MDWE = 65 };
	if (prctl(SET_MDWE, 1, 0, 0, 0))
		puts("PR_SET_MDWE is not known here");
}

int main(void)
{
	struct weft__entry entries[COUNT];
	struct weft__slots slots;
	size_t wanted = 0;
	deny();
	for (size_t i = 0; i < COUNT; i++) {
		entries[i] = (struct weft__entry){
		    (void *)forms[i].function, *forms[i].bytes, (void *)forms[i].wrapper, (void **)forms[i].original, NULL};
		wanted += forms[i].refusal == NULL;
	}
	size_t taken = weft__entries_patch(entries, COUNT, (uintptr_t)__executable_start, (uintptr_t)etext, &slots);
	if (taken != wanted)
		printf("%zu of %d are taken, %zu were to be\n", taken, COUNT, wanted);
	failed += taken != wanted;
	for (size_t i = 0; i < COUNT; i++) {
		const char *refusal = entries[i].refusal, *should = forms[i].refusal;
		check(refusal ? should && !strcmp(refusal, should) : !should, forms[i].name,
		    refusal ? refusal : "is taken, and should not be");
		if (!can_run(forms[i].name))
			continue;
		for (size_t other = 0; other < COUNT; other++)
			*forms[other].count = 0;
		check(forms[i].function(1, 2, (void *)form_sum) == forms[i].one, forms[i].name, "returns something else");
		check(forms[i].function(3, 4, (void *)form_sum) == forms[i].two, forms[i].name,
		    "returns something else, the second time");
		check(*forms[i].count == (refusal ? 0 : 2), forms[i].name, "goes another way");
	}
	printf("%d forms, %zu taken, %d failed\n", COUNT, taken, failed);
	return failed != 0;
}
