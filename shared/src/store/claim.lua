-- Before each script that publishes. The last argument may be `plain`; no channel and no frame is that.
-- `say`: to one shard, or to all. `isOurs`: whether the lease is the holder's, for arguments that begin with
-- holder, its epoch, lease ms. The last one that had it has it still.
if ARGV[#ARGV] == 'plain' then redis.call('SET', KEYS[4], '1', 'PX', 10000) end
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local function isOurs()
  local holder = redis.call('GET', KEYS[1])
  if holder ~= ARGV[1] then
    if holder and not string.match(holder, ':$') then return end
    if tonumber(redis.call('GET', KEYS[2]) or ARGV[2]) > tonumber(ARGV[2]) then return end
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  end
  return 1
end
