from planvec.benchmarks.measure import numbers_of_workers


def test_workers_double_up_to_all_cores():
    numbers = {cores: numbers_of_workers(cores) for cores in (1, 2, 6, 16)}
    assert numbers == {1: [1, 2], 2: [1, 2], 6: [1, 2, 4, 6], 16: [1, 2, 4, 8, 16]}
