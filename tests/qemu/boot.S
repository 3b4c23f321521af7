/* boot.S: a boot sector that uses the disks of its machine through the BIOS, says what it read, and turns the machine off.
 *
 * From each of two disks 24 times 4 KiB are read, one piece after the other, and of the second one's pieces each is written where
 * it came from.  The sum of all words goes to the serial line.  Sector 1 and those that follow have the data.
 * SPDX-License-Identifier: ISC */
	.code16
	.globl _start
_start:
	xorw %ax, %ax
	movw %ax, %ds
	movw %ax, %es
	movw %ax, %ss
	movw $0x7c00, %sp
	cld
disk:
	movl $1, sector
	movw $24, %cx
piece:
	pushw %cx
	movb $0x42, %ah			/* read */
	call transfer
	movw $0x8000, %si
	movw $1024, %cx
sum:
	lodsl
	addl %eax, total
	loop sum
	cmpb $0x81, drive
	jne next
	movw $0x4300, %ax		/* write */
	call transfer
next:
	addl $8, sector
	popw %cx
	loop piece
	incb drive
	cmpb $0x82, drive
	jne disk

	movl total, %ebx
	movw $8, %cx
digit:
	roll $4, %ebx
	movb %bl, %al
	andb $15, %al
	addb $'a', %al
	call say
	loop digit
	movb $'\n', %al
	call say
	xorw %ax, %ax
	movw $0xf4, %dx			/* isa-debug-exit: the exit status is 2 * 0 + 1 */
	outb %al, %dx
halt:
	hlt
	jmp halt

transfer:
	movb drive, %dl
	movw $packet, %si
	int $0x13
	jnc done
	movb $'!', %al
	call say
done:
	ret

say:
	movw $0x3f8, %dx
	outb %al, %dx
	ret

	.balign 4
packet:
	.byte 16, 0
	.word 8, 0x8000, 0		/* sectors, where to */
sector:
	.long 1, 0
total:
	.long 0
drive:
	.byte 0x80
	.org 510
	.word 0xaa55
