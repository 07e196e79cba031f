# made.rb SECONDS: new code all the time where freed code was: method made_N of file <N> in line N, called once. Runs on 2.5 and later.
finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + ARGV[0].to_f
number = 1000
holder = Object.new
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
  number += 1
  holder.instance_eval("def made_#{number}\n  i = 0\n  i += 1 while i < 20000\nend", "<#{number}>", number)
  holder.__send__(:"made_#{number}")
  holder.singleton_class.__send__(:remove_method, :"made_#{number}")
  GC.start if number % 20 == 0
end
