# A worker: it renews its leases, fails what it cannot do, outlives restarts of the server, and
# stops at SIGTERM after the current task.
#
# Install redis-rb (Debian: ruby-redis) and run: ruby worker.rb QUEUE
# PINPRIQ_URL names the server, by default pinpriq://127.0.0.1:7251.
require "redis"

TTR_MS = 1_000 # how long a lease lasts unless it is renewed
WAIT_MS = 2_000 # how long to wait for a task, and so for the end at SIGTERM
PAUSE_S = 0.1
PAUSE_MAX_S = 5

URL = ENV.fetch("PINPRIQ_URL", "pinpriq://127.0.0.1:7251")
QUEUE = ARGV.fetch(0, "ruby-jobs")
CannotDo = Class.new(StandardError)

# Connects to the first server of a URL such as pinpriq://a:7251,b:7251 that answers. redis-rb knows
# the scheme of Redis, and one server.
def connected(url, **options)
  parts = url.match(%r{\A(?:pinpriq|redis)(s?)://(.*@)?([^/@]+)\z}) or raise "PINPRIQ_URL is wrong"
  encrypted, user, servers = parts.captures
  servers = servers.split(",")
  servers.each do |server|
    pinpriq = Redis.new(url: "redis#{encrypted}://#{user}#{server}", **options)
    pinpriq.ping
    return pinpriq
  rescue Redis::BaseConnectionError
    raise if server.equal?(servers.last)
  end
end

# The work itself. It fails by raising an exception.
def handle(payload, attempts)
  sleep(1.5 * TTR_MS / 1000) if payload == "slow" # longer than the lease would last by itself
  raise CannotDo, "cannot do #{payload}" if payload == "broken"
  raise CannotDo, "cannot do #{payload}" if payload == "flaky" && attempts < 2
end

# The work has a thread, and this one renews the lease until the work is done.
def work_on(pinpriq, task)
  receipt, payload = task.values_at("receipt", "payload")
  work = Thread.new { handle(payload, task["attempts"]) }
  work.report_on_exception = false
  pinpriq.call("TOUCH", QUEUE, receipt) until work.join(TTR_MS / 3000.0)
  pinpriq.call("ACK", QUEUE, receipt)
  puts "#{payload} acked"
rescue CannotDo => error
  # The settings of the queue say what follows: another try later, or none.
  state = pinpriq.call("FAIL", QUEUE, receipt, "REASON", error.message)
  puts "#{payload} #{state == "B" ? "buried" : "released"}"
rescue Redis::CommandError => error
  puts "#{payload} lost: #{error.message}" # the lease has ended, and the task comes again
ensure
  work.kill # without the lease there is no use in going on
end

# A command that was under way when the connection broke is sent again, once: harmless for a TAKE
# with a TTR. An ACK that had arrived already is refused as STALE.
def connect
  pinpriq = connected(URL, timeout: 10)
  # After the third failure a task is buried: DIG or PLOW brings it back.
  pinpriq.call("QUEUE", "SET", QUEUE, "ATTEMPTS", 3, "BACKOFF", 20)
  pinpriq
end

$stdout.sync = true
goes_on = true
trap("TERM") { goes_on = false }
pause = PAUSE_S
pinpriq = nil
while goes_on
  begin
    pinpriq ||= connect
    # Without a task, an empty reply comes when the time is up.
    taken = pinpriq.call("TAKE", QUEUE, "WAIT", WAIT_MS, "TTR", TTR_MS, "WITHMETA")
    pause = PAUSE_S
    # What is known of a task comes as a flat list of names and values.
    taken.each { |fields| work_on(pinpriq, Hash[*fields]) }
  rescue Redis::BaseConnectionError => error
    puts "no server, next try in #{pause} s: #{error.message}"
    pinpriq = nil
    sleep(pause)
    pause = [2 * pause, PAUSE_MAX_S].min
  end
end
puts "worker: ok"
