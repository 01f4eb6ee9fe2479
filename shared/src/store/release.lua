-- Keys: lease. Arguments: process. Gives back the lease that it has, also one that it has not heard of.
local id = string.match(redis.call('GET', KEYS[1]) or '', '^%d+:(.*)$')
if id == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
