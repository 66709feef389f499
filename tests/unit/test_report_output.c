/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support_report.h"
#include "tools/report/output.h"

#define SYMBOLS "s.symbols"

static const struct made_function functions[] = {
	{ "_ZN3app5parseEi", 0x1200, 1, 0, "_Z4scanv", 0 },
	{ "setjmp", 0x6000, 2, 16, NULL, 1 },
	{ "main", 0x1139, 2, 0, NULL, 0 },
	{ NULL, 0x1300, 2, 0, NULL, 0 },
	{ "a\"b,\\\t\xff", 0x1400, 2, 0, NULL, 0 },
	{ "tiny", 0x1150, 0, 1, NULL, 0 },
	{ "small", 0x1160, 0, 1, NULL, 0 },
	{ "loop", 0x5100, 0, 3, NULL, 1 },
};
static const struct made_symbols symbols = {
	.file = SYMBOLS,
	.modules = { "/bin/app", "/lib/libc.so.6" },
	.functions = functions,
	.nfunctions = 5,
	.nskipped = 3,
};
static const struct made_record records[] = {
	{ 0, 0, 10, 8, 2, 20000, 16000, 1000, 4000 },
	{ 0, 1, 4, 0, 0, 0, 0, 0, 0 },
	{ 0, 2, 1, 0, 0, 0, 0, 0, 0 },
	{ 0, 3, 2, 2, 0, 4000, 4000, 1000, 3000 },
	{ 0, 4, 1, 1, 0, 200, 200, 200, 200 },
};
static const struct made_counts counts = {
	.file = "10-10-0.counts",
	.symbols = { SYMBOLS },
	.pid = 10,
	.start_time = 10,
	.mode = 2,
	.end = FORMAT_END_EXIT,
	.nthreads = 1,
	.records = records,
	.nrecords = sizeof(records) / sizeof(records[0]),
};

/* What is printed of a directory, to be freed. Removes the directory. */
static char *print(void (*printer)(FILE *, const struct model *, const struct output_options *),
	char *dir, bool merge, const struct output_options *output)
{
	const struct model_options options = { .dir = dir, .merge = merge };
	struct model model;
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	cr_assert(!model_load(&model, &options, to));
	/* Not the name of the temporary directory. */
	((struct model_options *)model.options)->dir = "ftr.data";
	printer(to, &model, output);
	model_free(&model);
	fclose(to);
	made_remove(dir);
	return text;
}

static char *one_process(uint32_t mode)
{
	struct made_counts made = counts;
	char *dir = made_dir();

	made.mode = mode;
	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &made, symbols.nfunctions);
	return dir;
}

Test(report_output, json)
{
	char *text = print(
		json_print, one_process(2), false, &(struct output_options){ .threads = true });

	cr_expect_str_eq(text,
		"{\"format\":1,\n"
		"\"processes\":[\n"
		"{\"pid\":10,\"ppid\":1,\"image\":0,\"exe\":\"/usr/bin/app\",\"args\":[\"app\","
		"\"--verbose\"],\"mode\":\"profile\",\"end\":\"exit\",\"status\":0}],\n"
		"\"functions\":[\n"
		"{\"pid\":10,\"process\":0,\"name\":\"app::parse(int)\",\"symbol\":"
		"\"_ZN3app5parseEi\",\"aliases\":[\"_Z4scanv\"],\"module\":\"/bin/app\","
		"\"address\":\"0x1200\",\"calls\":10,\"returned\":8,\"unwound\":2,\"open\":0,"
		"\"total_ns\":10000,\"self_ns\":8000,\"min_ns\":500,\"max_ns\":2000},\n"
		"{\"pid\":10,\"process\":0,\"name\":\"app+0x1300\",\"symbol\":\"\",\"aliases\":[],"
		"\"module\":\"/bin/app\",\"address\":\"0x1300\",\"calls\":2,\"returned\":2,"
		"\"unwound\":0,\"open\":0,\"total_ns\":2000,\"self_ns\":2000,\"min_ns\":500,"
		"\"max_ns\":1500},\n"
		"{\"pid\":10,\"process\":0,\"name\":\"a\\\"b,\\\\\\u0009\xef\xbf\xbd\",\"symbol\":"
		"\"a\\\"b,\\\\\\u0009\xef\xbf\xbd\",\"aliases\":[],\"module\":\"/bin/app\","
		"\"address\":\"0x1400\",\"calls\":1,\"returned\":1,\"unwound\":0,\"open\":0,"
		"\"total_ns\":100,\"self_ns\":100,\"min_ns\":100,\"max_ns\":100},\n"
		"{\"pid\":10,\"process\":0,\"name\":\"setjmp\",\"symbol\":\"setjmp\",\"aliases\":[],"
		"\"module\":\"/lib/libc.so.6\",\"address\":\"0x6000\",\"calls\":4,\"returned\":4,"
		"\"unwound\":0,\"open\":0,\"total_ns\":null,\"self_ns\":null,\"min_ns\":null,"
		"\"max_ns\":null,\"entry_only\":\"returns-twice\"},\n"
		"{\"pid\":10,\"process\":0,\"name\":\"main\",\"symbol\":\"main\",\"aliases\":[],"
		"\"module\":\"/bin/app\",\"address\":\"0x1139\",\"calls\":1,\"returned\":0,"
		"\"unwound\":0,\"open\":1,\"total_ns\":0,\"self_ns\":0,\"min_ns\":null,"
		"\"max_ns\":null}],\n"
		"\"skipped\":[\n"
		"{\"pid\":10,\"process\":0,\"name\":\"tiny\",\"symbol\":\"tiny\",\"aliases\":[],"
		"\"module\":\"/bin/app\",\"address\":\"0x1150\",\"reason\":\"too-short\"},\n"
		"{\"pid\":10,\"process\":0,\"name\":\"small\",\"symbol\":\"small\",\"aliases\":[],"
		"\"module\":\"/bin/app\",\"address\":\"0x1160\",\"reason\":\"too-short\"},\n"
		"{\"pid\":10,\"process\":0,\"name\":\"loop\",\"symbol\":\"loop\",\"aliases\":[],"
		"\"module\":\"/lib/libc.so.6\",\"address\":\"0x5100\",\"reason\":"
		"\"loop-to-entry\"}],\n"
		"\"threads\":[\n"
		"{\"pid\":10,\"process\":0,\"tid\":10,\"users\":1,\"calls\":18,\"self_ns\":10100,"
		"\"top\":\"app::parse(int)\"}],\n"
		"\"lost\":{\"calls\":0,\"threads\":0,\"processes\":0,\"functions\":0},\n"
		"\"flushes\":{\"asked\":0,\"done\":0}}\n");
	free(text);
}

Test(report_output, json_of_nothing)
{
	char *text = print(json_print, made_dir(), false, &(struct output_options){ 0 });
	const char *json = strchr(text, '\n') + 1; /* behind the complaint */

	cr_expect_str_eq(json, "{\"format\":1,\n\"processes\":[],\n\"functions\":[],\n"
			       "\"skipped\":[],\n"
			       "\"lost\":{\"calls\":0,\"threads\":0,\"processes\":0,\"functions\":0},\n"
			       "\"flushes\":{\"asked\":0,\"done\":0}}\n");
	free(text);
}

Test(report_output, csv)
{
	static const struct {
		struct output_options output;
		uint32_t mode;
		const char *text;
	} rows[] = {
		{ { 0 }, 2,
			"pid,name,symbol,module,address,calls,returned,unwound,open,"
			"total_ns,self_ns,min_ns,max_ns,entry_only\r\n"
			"10,app::parse(int),_ZN3app5parseEi,/bin/app,0x1200,10,8,2,0,"
			"10000,8000,500,2000,\r\n"
			"10,app+0x1300,,/bin/app,0x1300,2,2,0,0,2000,2000,500,1500,\r\n"
			"10,\"a\"\"b,\\\t\xef\xbf\xbd\",\"a\"\"b,\\\t\xef\xbf\xbd\",/bin/app,"
			"0x1400,1,1,0,0,100,100,100,100,\r\n"
			"10,setjmp,setjmp,/lib/libc.so.6,0x6000,4,4,0,0,,,,,returns-twice\r\n"
			"10,main,main,/bin/app,0x1139,1,0,0,1,0,0,,,\r\n" },
		{ { .threads = true }, 2,
			"pid,tid,users,calls,self_ns,top\r\n"
			"10,10,1,18,10100,app::parse(int)\r\n" },
		{ { .threads = true }, 1,
			"pid,tid,users,calls,self_ns,top\r\n"
			"10,10,1,18,,app::parse(int)\r\n" },
		{ { .skipped = true }, 2,
			"pid,name,symbol,module,address,reason\r\n"
			"10,tiny,tiny,/bin/app,0x1150,too-short\r\n"
			"10,small,small,/bin/app,0x1160,too-short\r\n"
			"10,loop,loop,/lib/libc.so.6,0x5100,loop-to-entry\r\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = print(csv_print, one_process(rows[i].mode), false, &rows[i].output);

		cr_expect_str_eq(text, rows[i].text, "row %zu", i);
		free(text);
	}
}

static char *two_processes(void)
{
	struct made_counts other = counts;
	uint32_t nids = symbols.nfunctions;
	size_t size;
	uint8_t *bytes;
	char *dir = one_process(2);

	other.file = "20-20-0.counts";
	other.pid = other.start_time = 20;
	other.mode = 1;
	other.end = FORMAT_END_NONE;
	bytes = made_counts_bytes(&other, &nids, &size);
	((struct counts_header *)bytes)->boot_id[0] ^= 1;
	((struct counts_header *)bytes)->lost_calls = 3;
	((struct counts_header *)bytes)->flushes_asked = 9;
	((struct counts_header *)bytes)->flushes_done = 5;
	made_write(dir, other.file, bytes, size);
	free(bytes);
	return dir;
}

Test(report_output, table)
{
	static const struct {
		const char *name;
		struct output_options output;
		int processes;
		uint32_t mode;
		const char *text;
	} rows[] = {
		{ "profile", { 0 }, 1, 2,
			"ftr.data: 1 process\n"
			"  10  /usr/bin/app --verbose  (profile, exit 0)\n"
			"\n"
			"calls  returned  unwound  open   total    self     avg    min     max  "
			"module     name\n"
			"   10         8        2     0  10.0us  8.00us  1.00us  500ns  2.00us  "
			"app        app::parse(int)\n"
			"    2         2        0     0  2.00us  2.00us  1.00us  500ns  1.50us  "
			"app        app+0x1300\n"
			"    1         1        0     0   100ns   100ns   100ns  100ns   100ns  "
			"app        a\"b,\\\\x09\\xff\n"
			"    4         4        0     0       -       -       -      -       -  "
			"libc.so.6  setjmp (entry only: returns-twice)\n"
			"    1         0        0     1       -       -       -      -       -  "
			"app        main\n"
			"\n"
			"5 functions traced, 3 skipped (2 too-short, 1 loop-to-entry; "
			"--skipped lists them)\n" },
		{ "count, everything", { .threads = true, .skipped = true }, 1, 1,
			"ftr.data: 1 process\n"
			"  10  /usr/bin/app --verbose  (count, exit 0)\n"
			"\n"
			"calls  returned  unwound  open  module     name\n"
			"   10         8        2     0  app        app::parse(int)\n"
			"    4         4        0     0  libc.so.6  setjmp (entry only: "
			"returns-twice)\n"
			"    2         2        0     0  app        app+0x1300\n"
			"    1         1        0     0  app        a\"b,\\\\x09\\xff\n"
			"    1         0        0     1  app        main\n"
			"\n"
			"pid  tid  users  calls  self  top\n"
			" 10   10      1     18     -  app::parse(int)\n"
			"\n"
			"skipped        address  module     name\n"
			"too-short       0x1150  app        tiny\n"
			"too-short       0x1160  app        small\n"
			"loop-to-entry   0x5100  libc.so.6  loop\n"
			"\n"
			"5 functions traced, 3 skipped (2 too-short, 1 loop-to-entry)\n" },
		{ "two of different modes", { 0 }, 2, 0,
			"ftr.data: 2 processes\n"
			"  10  /usr/bin/app --verbose  (profile, exit 0)\n"
			"  20  /usr/bin/app --verbose  (count, end unknown)\n"
			"\n"
			"calls  returned  unwound  open   total    self     avg    min     max  "
			"module     name\n"
			"   20        16        4     0  10.0us  8.00us  1.00us  500ns  2.00us  "
			"app        app::parse(int)\n"
			"    4         4        0     0  2.00us  2.00us  1.00us  500ns  1.50us  "
			"app        app+0x1300\n"
			"    2         2        0     0   100ns   100ns   100ns  100ns   100ns  "
			"app        a\"b,\\\\x09\\xff\n"
			"    8         8        0     0       -       -       -      -       -  "
			"libc.so.6  setjmp (entry only: returns-twice)\n"
			"    2         0        0     2       -       -       -      -       -  "
			"app        main\n"
			"\n"
			"5 functions traced, 3 skipped (2 too-short, 1 loop-to-entry; "
			"--skipped lists them)\n"
			"lost: 3 calls, 0 threads, 0 processes could not be recorded\n"
			"flushed: 5 of 9 detours and patches; the others were in place already\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *dir = rows[i].processes == 2 ? two_processes() : one_process(rows[i].mode);
		char *text = print(table_print, dir, true, &rows[i].output);

		cr_expect_str_eq(text, rows[i].text, "%s", rows[i].name);
		free(text);
	}
}

Test(report_output, colour_only_when_asked_for)
{
	for (int colour = 0; colour < 2; colour++) {
		char *text = print(table_print, one_process(2), true,
			&(struct output_options){ .colour = colour });
		char *escape = strchr(text, '\033');

		cr_expect(!escape == !colour, "colour %d", colour);
		/* Nothing is left switched on. */
		cr_expect(!colour || !strcmp(text + strlen(text) - 4, "\033[0m"));
		free(text);
	}
}

Test(report_output, long_command_lines_are_cut)
{
	uint32_t nids = symbols.nfunctions;
	size_t size;
	uint8_t *bytes = made_counts_bytes(&counts, &nids, &size);
	struct counts_header *h = (struct counts_header *)bytes;
	char *dir = made_dir(), *text;

	memset(h->args, 'x', sizeof(h->args));
	strcpy(h->args, "app");
	strcpy(h->args + 4, "-v");
	h->args_len = sizeof(h->args);
	made_write_symbols(dir, &symbols);
	made_write(dir, counts.file, bytes, size);
	text = print(table_print, dir, true, &(struct output_options){ 0 });
	cr_expect(strstr(text, "\n  10  /usr/bin/app -v ...  (profile, exit 0)\n"), "%s", text);
	free(text);
	free(bytes);
}
