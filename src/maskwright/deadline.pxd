cpdef check_time()
