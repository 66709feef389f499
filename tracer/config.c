/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "../arch/sys.h"

void config_complain(const char *format, ...)
{
	char line[1024];
	va_list ap;
	size_t n = str_print(line, sizeof(line), "ftr: ");

	va_start(ap, format);
	n += str_vprint(line + n, sizeof(line) - n - 1, format, ap);
	va_end(ap);
	line[n++] = '\n';
	sys_write_all(2, line, n);
}

const char *config_variable(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (str_starts(*envp, name) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static void read_data(struct config *config, const char *value)
{
	char here[CONFIG_PATH_MAX];
	long n = 0;

	if (!value || !*value)
		value = "ftr.data";
	here[0] = 0;
	if (*value != '/') {
		n = sys_call(SYS_getcwd, here, sizeof(here) - 1);
		if (n <= 0 || here[0] != '/')
			str_print(here, sizeof(here), "/proc/self/cwd");
	}
	if (strlen(here) + strlen(value) + 64 > sizeof(config->data)) {
		config_complain("FTR_DATA: the path is too long: %s", value);
		value = "ftr.data";
	}
	str_print(config->data, sizeof(config->data), "%s%s%s", here, *here ? "/" : "", value);
}

void config_read(struct config *config, char *const *envp)
{
	const char *value;

	*config = (struct config){ .mode = MODE_PROFILE };
	read_data(config, config_variable(envp, "FTR_DATA"));
	value = config_variable(envp, "FTR_MODE");
	if (value && str_eq(value, "count"))
		config->mode = MODE_COUNT;
	else if (value && *value && !str_eq(value, "profile"))
		config_complain("FTR_MODE=%s: must be count or profile; using profile", value);
	value = config_variable(envp, "FTR_MODULES");
	if (value && *value)
		config->modules = value;
	value = config_variable(envp, "FTR_FUNCTIONS");
	if (value && *value)
		config->functions = value;
	value = config_variable(envp, "FTR_PATCH");
	if (value && str_eq(value, "trap"))
		config->trap = true;
	else if (value && *value && !str_eq(value, "safe"))
		config_complain("FTR_PATCH=%s: must be safe or trap; using safe", value);
	value = config_variable(envp, "FTR_VERBOSE");
	if (value && str_eq(value, "1"))
		config->verbose = true;
	else if (value && *value && !str_eq(value, "0"))
		config_complain("FTR_VERBOSE=%s: must be 0 or 1; using 0", value);
}
