# threads.rb SECONDS: threads that are busy in functions of their own, one in a fiber; one that waits for a queue, one that sleeps;
# where the version has them a ractor. JSON on standard output: function -> the number that the system has for its thread, null
# where Ruby does not tell it.
require "json"

def spin(finish)
  i = 0
  i += 1 while i % 1000 != 0 || Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
end

def first(finish)
  spin(finish)
end

def second(finish)
  [1].each { spin(finish) }
end

def in_fiber(finish)
  Fiber.new { spin(finish) }.resume
end

def waits_for_queue(queue)
  queue.pop
end

def sleeps(seconds)
  sleep(seconds)
end

def started(numbers, name, *arguments)
  Thread.new do
    numbers[name] = Thread.current.respond_to?(:native_thread_id) ? Thread.current.native_thread_id : nil
    __send__(name, *arguments)
  end
end

seconds = ARGV[0].to_f
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
numbers = {}
queue = Queue.new
waiting = started(numbers, :waits_for_queue, queue)
sleeping = started(numbers, :sleeps, seconds)
busy = [started(numbers, :first, finish), started(numbers, :second, finish), started(numbers, :in_fiber, finish)]
if defined?(Ractor)
  $VERBOSE = nil
  def of_ractor(finish)
    i = 0
    i += 1 while i % 1000 != 0 || Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  end
  ractor = Ractor.new(finish) { |till| of_ractor(till) }
end
busy.each(&:join)
queue << 1
[waiting, sleeping].each(&:join)
ractor&.respond_to?(:value) ? ractor.value : ractor&.take
puts JSON.generate(numbers)
