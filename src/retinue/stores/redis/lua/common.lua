-- What the scripts on conversations share; it stands before each of them.
--
-- A script is run as a whole, and what it has written stays if it fails half-way. So each asks for
-- everything that could refuse it before it writes anything. Keys, after the store's prefix:
--
--   meta:ID     hash: id, owner, title, question, last, created, updated, parent, forked_at,
--               pause, document. `owner` is the name of the list that the conversation stands in.
--   order:ID    sorted set: message ids by position
--   heads:ID    hash: message id -> state|time|turn
--   bodies:ID   hash: message id -> the message as JSON
--   everyone, nobody, owner:OWNER
--               sorted sets: conversation ids by the tick of the clock at which they were written
--   clock       the number of writes
--   format      the version of all this
local PREFIX, ID, ASKER, TOKEN = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local FORMAT = '1'

local function key(kind, id) return PREFIX .. kind .. ':' .. (id or ID) end
local META, ORDER, HEADS, BODIES = key('meta'), key('order'), key('heads'), key('bodies')
local EVERYONE, CLOCK, VERSION = PREFIX .. 'everyone', PREFIX .. 'clock', PREFIX .. 'format'

local function newer()
  local format = redis.call('GET', VERSION)
  return format and format ~= FORMAT
end

-- Whether the conversation is there for the one who asks, as a word; and the list it stands in.
local function find()
  if newer() then return 'newer' end
  local id, owner = unpack(redis.call('HMGET', META, 'id', 'owner'))
  if not id then
    local rest = redis.call('EXISTS', META, ORDER, HEADS, BODIES)
    return rest == 0 and 'none' or 'foreign'
  end
  if id ~= ID or not owner then return 'foreign' end
  if ASKER ~= 'everyone' and ASKER ~= owner then return 'hidden' end
  return 'ok', owner
end

-- Why the conversation may not be written, or nothing. A key of a wrong type is an error here.
local function refusal(owner)
  redis.call('ZCARD', ORDER)
  redis.call('HLEN', HEADS)
  redis.call('HLEN', BODIES)
  redis.call('ZCARD', EVERYONE)
  redis.call('ZCARD', PREFIX .. owner)
  if not tonumber(redis.call('GET', CLOCK) or 0) then return 'foreign' end
  if TOKEN ~= '' and redis.call('HGET', key('lock'), 'holder') ~= TOKEN then return 'lost' end
end

-- Finds a conversation in order to write it: the list it stands in, or nothing and the reason.
local function find_to_write()
  local status, owner = find()
  if status ~= 'ok' then return nil, status end
  local reason = refusal(owner)
  if reason then return nil, reason end
  return owner
end

-- Puts the conversation at the beginning of the lists.
local function touch(owner, now)
  local tick = redis.call('INCR', CLOCK)
  redis.call('ZADD', EVERYONE, tick, ID)
  redis.call('ZADD', PREFIX .. owner, tick, ID)
  redis.call('HSET', META, 'updated', now)
end

-- The values of many fields of a hash, false for those that are not there.
local function values(hash, fields)
  local found = {}
  for first = 1, #fields, 1000 do  -- as Lua takes only so many arguments
    local last = math.min(first + 999, #fields)
    for _, value in ipairs(redis.call('HMGET', hash, unpack(fields, first, last))) do
      found[#found + 1] = value
    end
  end
  return found
end

-- Removes the entries of a conversation between two positions, and the title with its question.
local function cut(id, low, high)
  local meta, order = key('meta', id), key('order', id)
  for _, message in ipairs(redis.call('ZRANGEBYSCORE', order, low, high)) do
    redis.call('HDEL', key('heads', id), message)
    redis.call('HDEL', key('bodies', id), message)
  end
  redis.call('ZREMRANGEBYSCORE', order, low, high)
  local question = tonumber(redis.call('HGET', meta, 'question'))
  local last = redis.call('ZREVRANGE', order, 0, 0, 'WITHSCORES')
  if question and question > tonumber(last[2] or 0) then
    redis.call('HDEL', meta, 'question')
    redis.call('HSET', meta, 'title', '')
  end
end
