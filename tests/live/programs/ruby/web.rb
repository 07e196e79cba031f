# web.rb: what a server's requests and a queue's jobs do: one spends 5 ms of CPU time in fifty(), another 3 ms in thirty(), the
# third 2 ms in twenty(). Each process keeps in the file $TOLD.PID what its threads' clocks say of them: "fifty 1.25 thirty ...".
# Runs on 2.5 and later.
module Web
  PARTS = { "fifty" => 0.005, "thirty" => 0.003, "twenty" => 0.002 }.freeze
  LOCK = Mutex.new
  SPENT = Hash.new(0.0)

  module_function

  def cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end

  def fifty(finish)
    total = i = 0
    total += i & 7 while (i += 1) % 500 != 0 || cpu < finish
  end

  def thirty(finish)
    total = 0
    200.times { |i| total += i * i % 7 } while cpu < finish
  end

  def twenty(finish)
    (1..100).map { |i| i.to_s }.sort.join until cpu >= finish
  end

  def spend(name)
    start = cpu
    __send__(name, start + PARTS.fetch(name))
    used = cpu - start
    LOCK.synchronize { tell(name, used) }
    "#{name}\n"
  end

  def tell(name, used)
    if @pid != Process.pid
      @pid = Process.pid
      @file = File.open("#{ENV['TOLD']}.#{@pid}", "w")
      SPENT.clear
    end
    SPENT[name] += used
    @file.pwrite(SPENT.map { |part, seconds| format("%s %.6f", part, seconds) }.join(" "), 0)
  end
end
