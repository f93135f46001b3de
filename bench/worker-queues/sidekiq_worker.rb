# Jobs for Sidekiq, which do nothing. It keeps no results.
#
# Use: ruby sidekiq_worker.rb fill PORT JOBS, or
# ruby sidekiq_worker.rb threads PORT JOBS CONCURRENCY
require "json"
require "sidekiq"
require "sidekiq/api"
require "sidekiq/cli"

# Counts the jobs, and measures from the first one to the last one.
class Tally
  def initialize(jobs)
    @jobs = jobs
    @seen = Array.new(jobs)
    @done = @repeated = 0
    @lock = Mutex.new
  end

  # All that a job does.
  def note(number)
    @lock.synchronize do
      @first ||= moment
      if @seen[number]
        @repeated += 1
        return
      end
      @seen[number] = true
      @done += 1
      return if @done < @jobs

      @last = moment
    end
    Process.kill("TERM", Process.pid)
  end

  # Prints the result of a run, which the benchmark reads.
  def tell(left)
    elapsed_s, worker_s = @last.zip(@first).map { |late, early| late - early }
    puts JSON.generate(
      jobs: @jobs, done: @done, repeated: @repeated, left: left, elapsed_s: elapsed_s,
      worker_cpu_s: worker_s,
    )
  end

  private

  def moment
    clocks = [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID]
    clocks.map { |clock| Process.clock_gettime(clock) }
  end
end

class Nothing
  include Sidekiq::Worker

  class << self
    attr_accessor :tally
  end

  def perform(number)
    Nothing.tally.note(number)
  end
end

mode, port, *numbers = ARGV
jobs, concurrency = numbers.map(&:to_i)
# Sidekiq 6 speaks to the Redis client of its time.
Redis.silence_deprecations = true
ENV["REDIS_URL"] = "redis://127.0.0.1:#{port}"
if mode == "fill"
  (0...jobs).each_slice(500) do |slice|
    Sidekiq::Client.push_bulk("class" => Nothing, "args" => slice.zip)
  end
else
  Nothing.tally = Tally.new(jobs)
  at_exit { Nothing.tally.tell(Sidekiq::Queue.new.size + Sidekiq::RetrySet.new.size) }
  cli = Sidekiq::CLI.instance
  cli.parse(["-c", concurrency.to_s, "-e", "production", "-r", __FILE__])
  Sidekiq.logger.level = Logger::WARN
  cli.run(boot_app: false)
end
