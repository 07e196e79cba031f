# shares.rb SECONDS WARM: CPU time, 50 % in fifty(), 30 % in thirty(), 20 % in twenty(). Runs on 2.5 and later. Before them
# WARM seconds in warm(), while a profiler finds it: else what is missed at the start is fifty()'s.
#
# At the end it prints the true shares, as CPU clocks around each call tell: "fifty 0.5003 thirty ...".
def now
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def fifty(unit)
  total = i = 0
  total += i * i % 7 while (i += 1) < unit * 5
end

def thirty(unit)
  total = 0
  (unit * 3).times { |i| total += i * i % 7 }
end

def twenty(unit)
  (unit * 2).downto(1).map { |i| i * i % 7 }.sum
end

def warm(finish)
  nil while now < finish
end

warm(now + ARGV[1].to_f)
spent = Hash.new(0.0)
finish = now + ARGV[0].to_f
turns = { fifty: 4000, thirty: 4000, twenty: 4000 }
while now < finish
  turns.each do |name, unit|
    start = now
    __send__(name, unit)
    used = now - start
    spent[name] += used
    # each turn brings the shares to what they should be
    turns[name] = [(unit * ({ fifty: 0.005, thirty: 0.003, twenty: 0.002 }[name] / used)).to_i, 100].max
  end
end
total = spent.values.sum
puts spent.map { |name, used| "#{name} #{(used / total).round(4)}" }.join(" ")
