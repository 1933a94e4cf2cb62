"""Which number does a system call have on this machine? The calls that the sandbox has a view on, by their purpose.

Cells are `name:x86-64:aarch64`, with `-` where a machine has no such call. Other machines have no table: `MACHINE` is
None there, and nothing is isolated.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache


class Machine:
    """What system calls look like on one kind of processor."""

    def __init__(self, column: int, audit: int, foreign: int | None) -> None:
        self.column = column  # of the tables below
        self.audit = audit  # AUDIT_ARCH of linux/audit.h: what seccomp sees
        self.foreign = foreign  # numbers from here on belong to another calling convention of the same processor


_MACHINES = {"x86_64": Machine(1, 0xC000003E, 0x40000000), "aarch64": Machine(2, 0xC00000B7, None)}
MACHINE = _MACHINES.get(os.uname().machine)

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # the same everywhere
UNKNOWN = 450  # numbers from here on are newer than these tables


@cache
def load_libc() -> ctypes.CDLL:
    """The C library, by which calls are made that Python does not know; it keeps their errors."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _read_table(cells: str) -> Mapping[str, int]:
    """The calls of one table that this machine has."""
    if MACHINE is None:
        return {}
    rows = (cell.split(":") for cell in cells.split())
    return {row[0]: int(row[MACHINE.column]) for row in rows if row[MACHINE.column] != "-"}


# What a process of foreign code is never allowed.
NETWORK = _read_table(
    """
    socket:41:198 socketpair:53:199 connect:42:203 bind:49:200 listen:50:201 accept:43:202 accept4:288:242
    sendto:44:206 sendmsg:46:211 sendmmsg:307:269 recvmsg:47:212 recvmmsg:299:243
    """
)
PROCESSES = _read_table(
    """
    fork:57:- vfork:58:- execve:59:221 execveat:322:281 ptrace:101:117 process_vm_readv:310:270
    process_vm_writev:311:271 process_madvise:440:440 process_mrelease:448:448 kcmp:312:272 pidfd_open:434:434
    pidfd_getfd:438:438 pidfd_send_signal:424:424 setrlimit:160:164 setpriority:141:140
    sched_setscheduler:144:119 sched_setparam:142:118 sched_setattr:314:274 sched_setaffinity:203:122
    ioprio_set:251:30 migrate_pages:256:238 move_pages:279:239 setpgid:109:154 setsid:112:157
    """
)
FILES = _read_table(
    """
    truncate:76:45 ftruncate:77:46 openat2:437:437 chmod:90:- fchmod:91:52 fchmodat:268:53 chown:92:-
    fchown:93:55 lchown:94:- fchownat:260:54 utime:132:- utimes:235:- utimensat:280:88 futimesat:261:-
    setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7 removexattr:197:14 lremovexattr:198:15 fremovexattr:199:16
    name_to_handle_at:303:264 open_by_handle_at:304:265 memfd_create:319:279 memfd_secret:447:447
    """
)
SHARED = _read_table(
    """
    shmget:29:194 shmat:30:196 shmctl:31:195 semget:64:190 semop:65:193 semctl:66:191 msgget:68:186
    msgsnd:69:189 msgrcv:70:188 msgctl:71:187 mq_open:240:180 mq_unlink:241:181
    """
)
SYSTEM = _read_table(
    """
    mount:165:40 umount2:166:39 pivot_root:155:41 chroot:161:51 move_mount:429:429 open_tree:428:428
    fsopen:430:430 fsconfig:431:431 fsmount:432:432 fspick:433:433 mount_setattr:442:442 unshare:272:97
    setns:308:268 swapon:167:224 swapoff:168:225 reboot:169:142 sethostname:170:161 setdomainname:171:162
    init_module:175:105 finit_module:313:273 delete_module:176:106 kexec_load:246:104 kexec_file_load:320:294
    bpf:321:280 perf_event_open:298:241 userfaultfd:323:282 io_uring_setup:425:425 io_uring_enter:426:426
    io_uring_register:427:427 io_setup:206:0 io_submit:209:2 keyctl:250:219 add_key:248:217 request_key:249:218
    quotactl:179:60 quotactl_fd:443:443 acct:163:89 settimeofday:164:170 clock_settime:227:112
    clock_adjtime:305:266 adjtimex:159:171 iopl:172:- ioperm:173:- modify_ldt:154:- syslog:103:116
    vhangup:153:58 personality:135:92 fanotify_init:300:262 setuid:105:146 setgid:106:144 setreuid:113:145
    setregid:114:143 setresuid:117:147 setresgid:119:149 setgroups:116:159 setfsuid:122:151 setfsgid:123:152
    capset:126:91
    """
)
# What depends on the arguments.
ARGUMENTS = _read_table(
    """
    clone:56:220 clone3:435:435 kill:62:129 tkill:200:130 tgkill:234:131 rt_sigqueueinfo:129:138
    rt_tgsigqueueinfo:297:240 prlimit64:302:261 prctl:157:167 fcntl:72:25 ioctl:16:29 open:2:- creat:85:-
    openat:257:56
    """
)
# All that a process needs which computes, reads files and answers on a descriptor that it has.
COMPUTE = _read_table(
    """
    read:0:63 write:1:64 pread64:17:67 readv:19:65 writev:20:66 close:3:57 fstat:5:80 newfstatat:262:79
    statx:332:291 lseek:8:62 stat:4:- lstat:6:- access:21:- faccessat:269:48 faccessat2:439:439 readlink:89:-
    readlinkat:267:78 getdents64:217:61 getcwd:79:17 dup:32:23 poll:7:- ppoll:271:73 select:23:- pselect6:270:72
    mmap:9:222 munmap:11:215 mprotect:10:226 mremap:25:216 madvise:28:233 brk:12:214 futex:202:98 rseq:334:293
    set_robust_list:273:99 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 sigaltstack:131:132
    restart_syscall:219:128 exit:60:93 exit_group:231:94 getpid:39:172 gettid:186:178 getppid:110:173
    getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 uname:63:160 sysinfo:99:179 getrandom:318:278
    clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 nanosleep:35:101 gettimeofday:96:169
    time:201:- times:100:153 getrusage:98:165 getrlimit:97:163 sched_yield:24:124 sched_getaffinity:204:123
    getcpu:309:168 membarrier:324:283 set_tid_address:218:96 arch_prctl:158:-
    """
)
