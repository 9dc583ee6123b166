# %% [markdown]
# # Two parameters from five features
# The second example of Cranmer, Pavez and Louppe: $z_0 \sim N(\alpha, 1)$, $z_1 \sim N(\beta, 3)$,
# $z_2 \sim \frac12 N(-2, 1) + \frac12 N(2, 0.5)$, $z_3 \sim$ Exp(3), $z_4 \sim$ Exp(0.5),
# $x = R z$, and 500 observed events.

# %% parameters
samples = 1_000_000  # simulated events in all, each at its own θ

# %%
import neyman
import neyman.plot

R = [[1.31229955, 0.10499961, 0.48310515, -0.3249938, -0.26387927],
     [0.10499961, 1.15833058, -0.55865473, 0.25275522, -0.39790775],
     [0.48310515, -0.55865473, 2.25874579, -0.52087938, -0.39271231],
     [-0.3249938, 0.25275522, -0.52087938, 1.4034925, -0.63521059],
     [-0.26387927, -0.39790775, -0.39271231, -0.63521059, 1.0]]
z = neyman.Join([neyman.Normal("alpha", 1), neyman.Normal("beta", 3),
                 neyman.Mixture([neyman.Normal(-2, 1), neyman.Normal(2, 0.5)], [0.5, 0.5]),
                 neyman.Exponential(3), neyman.Exponential(0.5)])
p = neyman.LinearTransform(z, R, parameters={"alpha": (-3, 3), "beta": (-3, 3)})
truth = {"alpha": 1, "beta": -1}
observed = p.sample(500, truth, seed=1)
neyman.plot.scatter_matrix(observed)[0, 0].figure.savefig("data.png")

# %% [markdown]
# One network learns the ratio of all pairs of θ.

# %%
events = neyman.simulate(p, samples, design="uniform", seed=1)
ratio = neyman.SeparableRatio(events, "uniform", p.parameters, seed=1)

# %% [markdown]
# What the data say, beside the exact likelihood, which is known here.

# %%
likelihood = neyman.Likelihood(ratio, observed)
fit = likelihood.fit()
for name in fit.theta:
    print(f"{name} = {fit.theta[name]:.3f} ± {fit.error[name]:.3f}")
ax = neyman.plot.contours(likelihood, "alpha", "beta", truth=truth)
neyman.plot.contours(neyman.Likelihood(neyman.ExactRatio(p), observed), "alpha", "beta",
                     label="exact", ax=ax)
ax.figure.savefig("contours.png")
