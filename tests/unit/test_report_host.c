/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <elf.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support_report.h"
#include "tools/report/host.h"

Test(report_host, knows_this_boot)
{
	uint64_t boot_id[2];

	made_this_boot(boot_id);
	cr_expect(host_is_this_boot(boot_id));
	boot_id[1] ^= 1;
	cr_expect(!host_is_this_boot(boot_id));
}

Test(report_host, tells_running_processes_from_others)
{
	uint64_t start = made_start_time(getpid());
	pid_t child;
	siginfo_t info;

	cr_expect(host_is_running((uint32_t)getpid(), start));
	cr_expect(!host_is_running((uint32_t)getpid(), start + 1), "a reused pid");
	cr_expect(!host_is_running(0, 0));
	cr_expect(!host_is_running(UINT32_MAX, start));

	child = fork();
	if (child == 0)
		_exit(0);
	start = made_start_time(child);
	cr_assert(!waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	cr_expect(!host_is_running((uint32_t)child, start), "a zombie");
	waitpid(child, NULL, 0);
	cr_expect(!host_is_running((uint32_t)child, start), "gone");
}

Test(report_host, knows_the_rate_of_its_own_clock_only)
{
#if defined(__x86_64__)
	const uint32_t own = EM_X86_64, other = EM_AARCH64;
#elif defined(__aarch64__)
	const uint32_t own = EM_AARCH64, other = EM_X86_64;
#else
	const uint32_t own = EM_PPC64, other = EM_X86_64;
#endif
	struct host_rate rate = host_clock_rate(own);

	cr_expect_gt(rate.ticks, 0);
	cr_expect_geq(rate.ns, 20000000);
	cr_expect_eq(host_clock_rate(own).ticks, rate.ticks, "measured once");
	cr_expect_eq(host_clock_rate(other).ticks, 0);
	cr_expect_eq(host_clock_rate(EM_NONE).ticks, 0);
}
