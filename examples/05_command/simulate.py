"""Simulates decay times: exponential with mean tau, measured with a resolution sigma.

    python3 simulate.py TAU SIGMA N SEED OUTPUT
"""
import random
import sys

tau, sigma = float(sys.argv[1]), float(sys.argv[2])
n, seed, output = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]

random.seed(seed)
with open(output, "w") as file:
    file.write("time\n")
    for _ in range(n):
        time = random.expovariate(1 / tau) + random.gauss(0, sigma)
        file.write(f"{time}\n")
