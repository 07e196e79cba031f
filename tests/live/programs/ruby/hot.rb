# hot.rb SECONDS: 25 frames deep, then hot_a > mid_a > leaf_a and hot_b > each > mid_b > leaf_b by turns, as fast as can be.
# A stack with both letters never was. Runs on 2.5 and later.
ONE = [1].freeze

def leaf_a(n)
  n += 1 while n < 12
end

def mid_a(n)
  leaf_a(n)
end

def hot_a(n)
  mid_a(n)
end

def leaf_b(n)
  n + 1
end

def mid_b(n)
  leaf_b(n)
end

def hot_b(n)
  ONE.each { |one| mid_b(n + one) }
end

def turns(count)
  i = 0
  while i < count
    hot_a(i % 10)
    hot_b(i % 40)
    i += 1
  end
end

def down(depth, count)
  if depth > 0
    down(depth - 1, count)
  else
    turns(count)
  end
end

def main(seconds)
  finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
  down(25, 2000) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
end

main(ARGV[0].to_f)
