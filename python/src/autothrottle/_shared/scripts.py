"""What has to happen in the store at once: the very scripts of ``js/shared/redis/scripts.ts``, which explains
them. A test compares both.

The trap is one script that differs: two processes would hold the lease at once.
"""

COMPETE = """
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local known = tonumber(ARGV[2])
local epoch, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(.*)$')
if epoch and id ~= ARGV[1] and tonumber(epoch) >= known then return {} end
local stored = tonumber(redis.call('GET', KEYS[2]) or '0')
local isLost = stored < known
if not epoch and stored + known == 0 then isLost = redis.call(say, ARGV[4], '') > 0 end
if isLost then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', 604800000)
  redis.call('SET', KEYS[1], ARGV[2] .. ':', 'PX', ARGV[3])
  return {}
end
epoch = string.format('%.0f', math.max(stored, known) + 1)
redis.call('SET', KEYS[2], epoch, 'PX', 604800000)
redis.call('SET', KEYS[1], epoch .. ':' .. ARGV[1], 'PX', ARGV[3])
local kept = redis.call('HMGET', KEYS[3], 'bytes', 'at')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local age = kept[2] and now - tonumber(kept[2]) or 0
return {epoch, kept[1] or '', string.format('%.0f', math.max(age, 0))}"""

RENEW = """
if ARGV[5] == 'plain' then redis.call('SET', KEYS[4], '1', 'PX', 10000) end
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then
  if holder and not string.match(holder, ':$') then return 0 end
  if tonumber(redis.call('GET', KEYS[2]) or ARGV[2]) > tonumber(ARGV[2]) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', 604800000)
if ARGV[4] ~= '' then
  local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', KEYS[3], 'bytes', ARGV[4], 'at', string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[3], 604800000)
end
return 1"""

SEND = """
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then
  if holder and not string.match(holder, ':$') then return 0 end
  if tonumber(redis.call('GET', KEYS[2]) or ARGV[2]) > tonumber(ARGV[2]) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
end
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local unheard = {}
for at = 4, #ARGV, 2 do
  local heard = redis.call(say, ARGV[at], ARGV[at + 1])
  if heard == 0 and not KEYS[4] then unheard[#unheard + 1] = (at - 4) / 2 end
end
return unheard"""

RELEASE = """
local id = string.match(redis.call('GET', KEYS[1]) or '', '^%d+:(.*)$')
if id == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1"""

TELL = """
if ARGV[3] == 'plain' then redis.call('SET', KEYS[4], '1', 'PX', 10000) end
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local heard = redis.call(say, ARGV[1], ARGV[2])
return say == 'SPUBLISH' and heard or 1"""
