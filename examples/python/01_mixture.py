# %% [markdown]
# # How large is γ?
# The first example of Cranmer, Pavez and Louppe: a mixture of three normals,
# $p(x|\gamma) = (1-\gamma)\,(p_{c0}(x) + p_{c1}(x))/2 + \gamma\,p_{c2}(x)$, and 5000 observed
# events.

# %% parameters
samples = 200_000  # simulated events in all
datasets = 300  # of 5000 events each, to see what the method does in repetition

# %%
import neyman
import neyman.plot

p = neyman.Mixture([neyman.Normal(-2, 0.25), neyman.Normal(0, 2), neyman.Normal(1, 0.5)],
                   ["(1 - gamma)/2", "(1 - gamma)/2", "gamma"], parameters={"gamma": (0, 1)})
observed = p.sample(5000, {"gamma": 0.05}, seed=1)

# %% [markdown]
# A classifier for each pair of components, calibrated, gives the likelihood ratio of any two γ.

# %%
ratio = neyman.DecomposedRatio(p, reference=0, samples=samples, seed=1)
exact = neyman.ExactRatio(p)
test = p.sample(20000, 0.05, seed=2)
ax = neyman.plot.log_ratios(ratio.log_ratios(test, 0.05, 0), exact.log_ratios(test, 0.05, 0))
ax.figure.savefig("log_ratio.png")

# %% [markdown]
# What the data say, beside the exact likelihood, which is known here.

# %%
likelihood = neyman.Likelihood(ratio, observed)
fit = likelihood.fit()
interval = likelihood.interval("gamma", level=0.95, best=fit)
print(f"γ = {fit.theta['gamma']:.4f} ± {fit.error['gamma']:.4f}, "
      f"95 % [{interval.low:.4f}, {interval.high:.4f}]")
ax = neyman.plot.profile(likelihood, truth=0.05)
neyman.plot.profile(neyman.Likelihood(exact, observed), label="exact", ax=ax)
ax.figure.savefig("likelihood.png")

# %% [markdown]
# What the method does in repetition: estimates and −2 log Λ of many simulated datasets.

# %%
toys = neyman.toys(p, ratio, 0.05, datasets=datasets, events=5000, seed=3)
print(f"coverage of the 68.3 % intervals: {toys.coverage[0]:.3f}")
neyman.plot.ensemble(toys).figure.savefig("ensemble.png")
neyman.plot.wilks(toys).figure.savefig("wilks.png")
