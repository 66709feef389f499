/* SPDX-License-Identifier: MIT */
/* The same library under GoogleTest. */
#include "kv.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ftr/ftr.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace
{

/* Every test's expectations are verified at its end; each that is not met is a failure of it. */
class Kv : public testing::Test
{
      protected:
	std::string path = "/tmp/kv-gtest-" + std::to_string(getpid());
	struct kv *kv = nullptr;

	void SetUp() override
	{
		unlink(path.c_str());
	}

	void TearDown() override
	{
		if (kv)
			kv_close(kv);
		unlink(path.c_str());
		ftr_verify([](const char *message, void *) { ADD_FAILURE() << message; }, nullptr);
	}

	void open()
	{
		ASSERT_EQ(kv_open(path.c_str(), &kv), 0);
	}
};

TEST_F(Kv, CountsPuts)
{
	ftr_expect *puts = ftr_expect("kv_put", "w(pzz)");

	ftr_expect_calls(puts, 2, 2);
	ftr_expect_string(puts, FTR_MUST, 1, "key");
	ftr_expect_integer(puts, FTR_MUST, FTR_RESULT, 0);
	open();
	EXPECT_EQ(kv_put(kv, "key", "1"), 0);
	EXPECT_EQ(kv_put(kv, "key", "2"), 0);
}

TEST_F(Kv, OpensBeforeItPuts)
{
	ftr_expect *opens = ftr_expect("kv_open", nullptr), *puts = ftr_expect("kv_put", nullptr);

	ftr_expect_order(FTR_STRICT, opens, puts, puts);
	open();
	EXPECT_EQ(kv_put(kv, "a", "1"), 0);
	EXPECT_EQ(kv_put(kv, "b", "2"), 0);
}

TEST_F(Kv, ProbesEndWithTheirScope)
{
	unsigned char before[16];
	ftr_probe_spec spec = {};

	std::memcpy(before, reinterpret_cast<const void *>(kv_get), sizeof(before));
	spec.name = "kv_get";
	open();
	{
		ftr::probe gets(spec);

		ASSERT_TRUE(gets) << ftr_error();
		kv_get(kv, "a");
		EXPECT_EQ(gets.counts().calls, 1u);
	}
	EXPECT_EQ(std::memcmp(before, reinterpret_cast<const void *>(kv_get), sizeof(before)), 0);
}

TEST_F(Kv, MemoryRunsOut)
{
	ftr_probe_spec spec = {};
	ftr_fault fault = {};

	spec.name = "malloc";
	fault.error = ENOMEM;
	fault.caller_module = "libkv.so";
	open();
	{
		ftr::probe no_memory(spec, fault);

		ASSERT_TRUE(no_memory) << ftr_error();
		EXPECT_EQ(kv_put(kv, "a", "1"), -ENOMEM);
	}
	EXPECT_EQ(kv_put(kv, "a", "1"), 0);
}

/* What is told of a failure; here it is wanted. */
TEST_F(Kv, FailuresAreTold)
{
	std::string told;

	ftr_expect_calls(ftr_expect_at("test.cc", 5, "kv_put", "w(pzz)"), 1, 1);
	EXPECT_EQ(ftr_verify([](const char *message,
				     void *data) { *static_cast<std::string *>(data) += message; },
			  &told),
		1);
	EXPECT_EQ(told, "test.cc:5: kv_put: expected exactly 1 call, seen none");
}

TEST_F(Kv, ScopesForget)
{
	{
		ftr::expectations scope;

		ftr_expect("kv_put", nullptr);
	}
	EXPECT_EQ(ftr_verify(nullptr, nullptr), 0);
}

} // namespace
