/* boot.S: switches from multiboot's 32-bit mode to 64-bit mode, with the first GiB of memory mapped to itself.  SPDX-License-Identifier: ISC */
	.section .multiboot, "a"
	.align 4
	.long 0x1BADB002, 0, -0x1BADB002

	.bss
	.align 4096
	.globl ring_pages
tables:	.skip 4096	/* entries of 512 GiB */
gibs:	.skip 4096	/* entries of 1 GiB */
first:	.skip 4096	/* pages of 2 MiB: the first GiB */
second:	.skip 4096	/* the second GiB: the ring, at its start */
ring_pages: .skip 4096	/* pages of 4 KiB, which machine.c maps */
	.skip 65536
stack:

	.text
	.code32
	.globl _start
_start:	movl $stack, %esp
	movl %ebx, %edi		/* the loader's information */
	movl $gibs + 3, tables
	movl $first + 3, gibs
	movl $second + 3, gibs + 8
	movl $ring_pages + 3, second
	movl $first, %ecx
	movl $0x83, %eax
1:	movl %eax, (%ecx)
	addl $8, %ecx
	addl $0x200000, %eax
	cmpl $0x40000083, %eax
	jne 1b
	movl $tables, %eax
	movl %eax, %cr3
	movl %cr4, %eax
	orl $0x620, %eax	/* PAE; floating point */
	movl %eax, %cr4
	movl $0xC0000080, %ecx
	rdmsr
	orl $0x100, %eax	/* long mode */
	wrmsr
	movl %cr0, %eax
	orl $0x80000000, %eax
	movl %eax, %cr0
	lgdt gdtr
	ljmp $8, $long_mode

	.code64
long_mode:
	movl $16, %eax
	movl %eax, %ds
	movl %eax, %es
	movl %eax, %ss
	movl %edi, %edi
	xorl %ebp, %ebp
	call kernel_main
1:	cli
	hlt
	jmp 1b

	.section .rodata
	.align 8
gdt:	.quad 0, 0x00209A0000000000, 0x0000920000000000
gdtr:	.word 23
	.long gdt

	.section .note.GNU-stack, "", @progbits
