-- SPDX-License-Identifier: MIT
-- Ends with an error nobody catches: message, traceback and status 1.
local function c(n) if n == 0 then error("nobody catches this") end c(n - 1) return n end
c(30)
