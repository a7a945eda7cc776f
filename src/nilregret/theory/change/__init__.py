"""Change tests: Algorithm 1 of Avanesov's GP-UCB-CPD for one test and after every pair, with its schedules."""
