-- What the scripts on the locks of conversations share; it stands before each of them.
--
--   lock:ID     hash: holder (its token), until (milliseconds of this server's clock), tickets
--   line:ID     sorted set: tokens of those who wait, by their tickets
--   waits:ID    sorted set: the same, by the time until which they are taken to be alive
--
-- A holder that has not renewed its hold in time keeps it until another takes it, and a later
-- renewal finds out which. The keys of those who never come back go after an hour.
local PREFIX, ID, TOKEN, LEASE = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local LOCK, LINE, WAITS = PREFIX .. 'lock:' .. ID, PREFIX .. 'line:' .. ID, PREFIX .. 'waits:' .. ID

local seconds, micros = unpack(redis.call('TIME'))
local NOW = tonumber(seconds) * 1000 + math.floor(tonumber(micros) / 1000)

local function keep(key) redis.call('PEXPIRE', key, LEASE + 3600000) end

local function hold()
  redis.call('HSET', LOCK, 'holder', TOKEN, 'until', NOW + LEASE)
  keep(LOCK)
end

local function leave(token)
  redis.call('ZREM', LINE, token)
  redis.call('ZREM', WAITS, token)
end
