-- Keys: lease, epoch, snapshot, and in a cluster `plain`. Arguments: holder, its epoch, lease ms, the
-- snapshot and `plain`, each may be empty. Gives 1 if the lease is the holder's.
if not isOurs() then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', 604800000)
if ARGV[4] ~= '' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', KEYS[3], 'bytes', ARGV[4], 'at', string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[3], 604800000)
end
return 1
